"""The choice of jobs for a computer, and of the versions to run them: the rules of a reply to a work request. Pure."""
