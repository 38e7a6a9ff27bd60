"""Volunteers' account pages and their forms."""
