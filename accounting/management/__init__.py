"""Management commands of the account manager."""
