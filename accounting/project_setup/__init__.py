"""Operators set a project up on the web: ask it, sign its address, enter its account, try it; and see its problems."""
