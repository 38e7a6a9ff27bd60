"""The tasks that clients list: followed until their projects report the outcome, and shown while they run."""
