"""Statistics of versions and computers: created, renewed by the feeder, merged, checked and exported."""
