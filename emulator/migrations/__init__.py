"""Changes of the emulator's tables."""
