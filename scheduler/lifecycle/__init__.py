"""The background steps of a workunit's life, from the transitioner to the archive.

A workunit that makes a step fail waits in the retry queue.
"""
