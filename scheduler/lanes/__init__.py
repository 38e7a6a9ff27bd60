"""Jobs that wait for certain computers: which there are, and what operators do with those that nobody comes for."""
