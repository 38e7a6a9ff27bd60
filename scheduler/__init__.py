"""The project server: scheduler RPC, files, transitioner."""
