"""The client emulator: what a BOINC client would do on a computer, under scheduling policies of three generations."""
