"""Catalogues of texts: extraction from modules, templates and scripts, updates, and checks."""
