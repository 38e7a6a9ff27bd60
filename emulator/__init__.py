"""The client emulator: simulates a BOINC client on a computer, under scheduling policies of three generations."""
