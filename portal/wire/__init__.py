"""Bytes and text of BOINC's protocols, turned into dataclasses and back: tags, hardware, keys, signatures. Pure."""
