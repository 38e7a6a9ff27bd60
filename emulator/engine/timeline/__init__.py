"""The recording of a run: stretches of running, RPCs, decisions with their reasons, and the figures."""
