"""Recorded traces of BOINC's own validator, replayed through the rules and through the database."""
