"""Telling the owner's sign-ins from others': counted failures, known devices, names of browsers."""
