"""Operators set a project up from the web: ask it, sign its address, enter its account, try it; and see its trouble."""
