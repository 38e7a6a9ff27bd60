"""Claims of valid results: by the published rules, by those of BOINC's server, and in the other credit systems."""
