"""The site itself: people and their computers, the protocols of BOINC clients, settings and operation."""

import gc

__version__ = "1.0.0"

# What a process of the site loads stays: 170,000 objects. Python would look for garbage after every 700 new ones, which
# takes an eighth of the start.
gc.set_threshold(10_000)
