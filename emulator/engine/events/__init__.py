"""What changes a client: contacts with projects, hardware, preferences, and the state that it begins with."""
