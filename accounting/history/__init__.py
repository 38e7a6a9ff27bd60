"""The history page: what was credited by day, week or month, and one day in full."""
