"""Measurements of the project server."""
