"""Replacements of Django's commands, in an app that comes before the apps that have them."""
