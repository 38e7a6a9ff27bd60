"""Chooses the jobs of a request: what its computer can run, the versions it gets, and the jobs to send.

The rules are in `scheduler.engine.choice`; docs/explanation/scheduler.md explains them.
"""
