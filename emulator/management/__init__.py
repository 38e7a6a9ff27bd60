"""The emulator's commands."""
