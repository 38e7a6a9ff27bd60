"""The site itself: people and their computers, the protocols of BOINC clients, settings and operation."""
