"""Blocks: computers and volunteers that get no new jobs."""
