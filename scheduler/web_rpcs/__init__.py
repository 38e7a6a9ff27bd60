"""What other sites and programs ask of the project by BOINC's addresses (docs/reference/web-rpcs.md)."""
