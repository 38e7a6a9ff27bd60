"""Measurements of the account manager, run by ``manage.py bench`` in a database of their own."""
