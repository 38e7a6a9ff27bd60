"""What happens to a workunit in the background, from the transitioner to the archive.

A workunit that makes a step fail waits in the retry queue.
"""
