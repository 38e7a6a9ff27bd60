"""Upgrades without stopping: what of a new version the processes of the old one would not survive."""
