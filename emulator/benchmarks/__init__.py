"""What `make bench` measures of the emulator."""
