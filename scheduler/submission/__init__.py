"""Submit jobs as batches, follow them, cancel them and fetch their outputs: commands, pages and the REST API."""
