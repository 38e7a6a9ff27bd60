"""What all pages and the REST API share: middleware, template context, and the base of the API views."""
