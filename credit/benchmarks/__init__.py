"""Measurements of the validator, run by ``manage.py bench`` in a separate database."""
