"""Periodic tasks: which beat process sends them, and what has become of each."""
