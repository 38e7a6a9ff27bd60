"""Work that volunteers ask for and that takes long: its queue in PostgreSQL, fair turns, and who does it."""
