"""Volunteers and operators: accounts, sign-in, client keys, API tokens, and the pages and forms for them."""
