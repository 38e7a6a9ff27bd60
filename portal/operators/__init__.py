"""Operators' actions on accounts, and their roles."""
