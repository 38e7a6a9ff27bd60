"""Apps and their versions: release them, change the key that signs them, and know them at each request."""
