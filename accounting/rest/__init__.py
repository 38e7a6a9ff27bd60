"""The REST API, /api/v1/: what a volunteer's own programs can read. docs/api.md has examples."""
