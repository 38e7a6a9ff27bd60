"""News: the page, and the feeds that BOINC clients show as notices."""
