"""What operators do with accounts, and what their roles allow them."""
