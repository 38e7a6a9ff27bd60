"""Adding many computers: limits, requests for more, and join tokens."""
