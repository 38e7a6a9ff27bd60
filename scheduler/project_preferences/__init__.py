"""Volunteers' preferences for this project: the page, and how they are stored."""
