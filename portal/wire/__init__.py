"""BOINC's protocols as bytes and text, turned into dataclasses and back: tags, hardware, keys, signatures. Pure."""
