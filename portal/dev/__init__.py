"""`make run`: the process manager, and the embedded PostgreSQL and Valkey of a private installation."""
