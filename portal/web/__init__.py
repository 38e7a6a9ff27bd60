"""Shared by all pages and the REST API: middleware, template context, and the base of the API views."""
