"""Measurements of the validator, run by ``manage.py bench`` in a database of their own."""
