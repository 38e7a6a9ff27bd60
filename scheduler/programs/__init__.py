"""Apps and their versions: release them, change the key that signs them, and keep them in memory for requests."""
