"""What BOINC clients ask: the event loop's application, batches of database queries, limits, refusals, web RPCs."""
