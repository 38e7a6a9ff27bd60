"""What projects granted: their statistics exports, fetched, read as streams, and kept for our volunteers' computers."""
