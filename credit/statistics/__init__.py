"""Statistics of versions and computers: created, updated by the feeder, merged, checked and exported."""
