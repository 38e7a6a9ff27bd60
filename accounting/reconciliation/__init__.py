"""Estimated and granted credit: what is settled, what is provisional, how they compare."""
