"""Checks and other upkeep that operators start in the browser, as commands do: a worker does them, results are kept."""
