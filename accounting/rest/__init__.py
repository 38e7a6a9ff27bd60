"""The REST API, /api/v1/: what a volunteer's own programs can read. docs/reference/api.md has examples."""
