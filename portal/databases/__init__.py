"""PostgreSQL on several machines: which of them is the primary, and how the site behaves while that changes."""
