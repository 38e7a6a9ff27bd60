"""Badges: the operators' rules, who earned them and when (docs/how-to/operate.md)."""
