"""What a volunteer's tasks of one app earned, by day. Histories know the apps of this site's own project alone."""
