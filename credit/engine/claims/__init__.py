"""What a valid result claims: by the published rules, by those of BOINC's server, and in the other credit systems."""
