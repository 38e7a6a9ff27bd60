"""Runs the steps of an import, which may be interrupted anywhere and goes on from there."""
