"""Coverage-guided fuzzing of all parsers of strangers' input: `make fuzz` (docs/explanation/testing.md)."""
