"""Long-running work that volunteers ask for: its queue in PostgreSQL, fair turns, and what carries it out."""
