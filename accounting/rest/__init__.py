"""The REST API, /api/v1/, for a volunteer's own programs. docs/reference/api.md has examples."""
