"""Simulated populations of computers.

They measure how far the rules meet their goals, and fill a database for demos, tests and benchmarks.
"""
