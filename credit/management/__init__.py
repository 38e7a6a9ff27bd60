"""Commands of validated credit."""
