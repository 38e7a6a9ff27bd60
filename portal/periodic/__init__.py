"""Periodic tasks: how often each is due, who sends them, and which of their messages a worker carries out."""
