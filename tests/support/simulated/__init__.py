"""A deterministic simulation of the event loop, its batcher and a database: virtual time, seeded faults, no threads."""
