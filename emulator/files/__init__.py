"""Scenarios as files: folders of a client's files, uploads, JSON, and the examples. Pure."""
