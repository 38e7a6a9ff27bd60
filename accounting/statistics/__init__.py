"""Projects' grants: their statistics exports, fetched, read as streams, and stored for our volunteers' computers."""
