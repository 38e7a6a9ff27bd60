"""Changes of settings that change credit: their previews, resetting a version's statistics, and what a change did."""
