"""PostgreSQL on several machines: which of them is the primary, and what happens while that changes."""
