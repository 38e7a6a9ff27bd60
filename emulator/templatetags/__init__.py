"""Template filters of the emulator's pages."""
