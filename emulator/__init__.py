"""The client emulator: scheduling policies of three generations, drawn."""
