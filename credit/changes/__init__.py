"""Changes of settings that affect credit: their previews, resets of a version's statistics, and measured effects."""
