"""Traces of BOINC's own validator and feeder: reading them, and deciding the same by the engine and by this site."""
