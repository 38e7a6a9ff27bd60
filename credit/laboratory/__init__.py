"""Experiments with the credit rules: simulated populations through the real engine, and how goals are met. Pure."""
