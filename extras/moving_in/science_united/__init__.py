"""Science United: an account manager in BOINC's web site, with tables of its own beside BOINC's."""
