"""Estimated and granted credit: the settled part, the provisional part, and how they compare."""
