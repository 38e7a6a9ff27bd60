"""What other programs read: downloads of the history as CSV and JSON, and the feed of announcements."""
