"""Simulated populations of computers.

They measure how well the rules meet their goals, and fill a database for demos, tests and benchmarks.
"""
