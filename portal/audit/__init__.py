"""Changes of settings: each is recorded with who made it, why, and its values before and after; and can be undone."""
