"""Background tasks of the site itself."""
