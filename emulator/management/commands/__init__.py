"""`manage.py emulate`."""
