"""Copies of a volunteer's data, and closing an account for good."""
