"""Validated credit: how results are compared, what credit they are granted, and the statistics behind it."""
