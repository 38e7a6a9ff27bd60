"""Volunteers' own accounts at projects: found, created, entered or taken over, and checked weekly."""
