"""Mails to volunteers: which are due, and the page where they choose what they get."""
