"""How many sessions wait for a lock of the database."""

from __future__ import annotations

from django.db import connection


def nwaiting_for_locks() -> int:
    """Also inside a transaction, where PostgreSQL would repeat its first answer."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        number: int = cursor.fetchone()[0]
        return number
