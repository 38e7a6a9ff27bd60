"""Validated credit: engine, validator, feeder."""
