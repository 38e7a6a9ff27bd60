"""The site itself: people and their computers, the protocols of BOINC clients, settings and operation."""

import gc

__version__ = "1.0.0"

# The 170,000 objects that a process loads stay. Collecting garbage after every 700 new ones, Python's default, would
# take an eighth of the start-up time.
gc.set_threshold(10_000)
