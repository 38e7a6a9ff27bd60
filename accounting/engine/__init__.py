"""The account manager's rules: the ledger, preferences, merging. Pure: no clock, no database, no Django."""
