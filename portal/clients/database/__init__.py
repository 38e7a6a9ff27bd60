"""How use cases of clients reach PostgreSQL: batches, connections, statements in files, rows, and what is cached."""
