"""Badges: rules of the operators, who reached them and when (docs/how-to/operate.md)."""
