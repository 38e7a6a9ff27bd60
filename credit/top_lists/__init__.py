"""Public top lists of this project: teams, and volunteers who agreed to be shown."""
