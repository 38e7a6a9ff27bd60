"""What a volunteer's tasks of one app earned, by day. Only this site's own project has app histories."""
