"""Submissions: what a submitter may do, where the jobs lie in the queue, and when they will be done. Pure."""
