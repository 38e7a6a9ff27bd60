"""Simulated computers that report through the real RPC, for demo data, tests and measurements."""
