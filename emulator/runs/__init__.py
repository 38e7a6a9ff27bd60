"""Experiments and their runs: quotas, the worker, the process that computes, the packed timeline.

This package's `process` runs without Django, so nothing may be imported here.
"""
