"""The tasks that clients list: followed until their projects say what became of them, and shown while they run."""
