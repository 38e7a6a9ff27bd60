"""What tells a sign-in by its owner from others: counted failures, known devices, names of browsers."""
