"""Checks and other upkeep that operators start in the browser; a worker runs them, and results are stored."""
