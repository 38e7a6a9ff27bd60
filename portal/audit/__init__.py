"""Changes of settings: each is kept with who made it, why, and its values before and after; and can be undone."""
