"""Which projects computers run: what volunteers and operators chose, how projects stand, and the reasons in words."""
