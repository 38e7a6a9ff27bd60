"""Public pages of the project's volunteers and teams: top lists of both, and a page for each team."""
