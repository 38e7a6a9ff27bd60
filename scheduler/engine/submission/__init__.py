"""Submissions: a submitter's limits, the jobs' positions in the queue, and when they will be done. Pure."""
