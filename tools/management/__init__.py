"""Commands of `manage.py` that no deployment has."""
