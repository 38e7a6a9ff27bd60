"""Template tags of the emulator."""
