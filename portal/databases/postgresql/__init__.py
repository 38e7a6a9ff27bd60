"""Django's database engine for PostgreSQL, with the deadline of requests (settings.DATABASES)."""
