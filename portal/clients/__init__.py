"""Answers to BOINC clients: the event loop's application, database queries in batches, limits, errors, web RPCs."""
