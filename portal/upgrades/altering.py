"""Change a table of a site that goes on."""

from __future__ import annotations

from django.db import connection

from portal.databases.short_waits import WAIT, in_short_waits, limit_waits


def alter(tables: str, *statements: str) -> None:
    """Execute statements that lock these tables for a moment, in one transaction, once nobody uses them for long.

    Raises OperationalError if others hold a table all the time.
    """

    def change() -> None:
        hold(tables)
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    in_short_waits(change)


def hold(tables: str) -> None:
    """Let nobody else alter these tables until the transaction ends. Vacuuming, for which the statements that follow
    would not wait long enough, is asked to leave; nobody else notices.
    """
    limit_waits("5s")
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {tables} IN SHARE UPDATE EXCLUSIVE MODE")
    limit_waits(WAIT)
