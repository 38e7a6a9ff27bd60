"""Submit jobs as batches, monitor them, cancel them and fetch their outputs: commands, pages and the REST API."""
