"""Everything that changes a client: contacts with projects, hardware, preferences, and its initial state."""
