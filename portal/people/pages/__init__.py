"""Volunteers' pages of their account, and the forms on them."""
