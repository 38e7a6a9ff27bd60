"""Commands of Django that are replaced: an app that comes before those that have them."""
