"""BOINC's web RPCs, for other sites and programs (docs/reference/web-rpcs.md)."""
