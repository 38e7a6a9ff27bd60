"""Coverage-guided fuzzing of all that reads what strangers send: `make fuzz` (docs/explanation/testing.md)."""
