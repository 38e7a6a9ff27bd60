"""Volunteers' computers: which record a client belongs to, and the changes that an owner makes to one."""
