"""The formats of BOINC's protocols and of submissions: bytes to dataclasses and back. Pure."""
