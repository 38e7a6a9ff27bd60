"""The steps that bring a BOINC project here."""
