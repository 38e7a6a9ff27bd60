"""The emulator's part of the REST API, /api/v1/experiments/: docs/how-to/emulator-scenarios.md has examples."""
