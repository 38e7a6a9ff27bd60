"""Measurements of validated credit."""
