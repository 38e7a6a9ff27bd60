"""Teams of volunteers: only who wants to is in one, and only in the project's own pages."""
