"""What happens to a workunit in the background, from the transitioner to the archive.

What makes a step fail waits in the retry queue.
"""
