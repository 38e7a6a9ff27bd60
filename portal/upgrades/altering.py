"""Change a table of a site that goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg.errors import LockNotAvailable

ATTEMPTS: Final = 30
PAUSE_SECS: Final = 2.0


def alter(tables: str, *statements: str) -> None:
    """Execute statements that lock these tables for a moment, in one transaction, once nobody uses them for long.

    Gives up, and begins again, before PostgreSQL would take two that wait for each other for a deadlock: the other one
    may be a client's report. Vacuuming, which it would not wait for so long, is asked to leave first, in a way that
    nobody else notices. Raises OperationalError if others hold a table all the time.
    """

    def change(cursor: CursorWrapper) -> None:
        cursor.execute("SET LOCAL lock_timeout = '5s'")
        cursor.execute(f"LOCK TABLE {tables} IN SHARE UPDATE EXCLUSIVE MODE")
        cursor.execute("SET LOCAL lock_timeout = '500ms'")
        for statement in statements:
            cursor.execute(statement)

    repeat(change)


def repeat(change: Callable[[CursorWrapper], None]) -> None:
    """Do it in a transaction that waits half a second for a lock, and again until it gets all it needs."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '500ms'")
                change(cursor)
            return
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable) or attempt == ATTEMPTS:
                raise
            # Nothing tells when a lock is free but to wait for it, and who waits holds up all who come later. They are
            # served before the next attempt.
            time.sleep(PAUSE_SECS)
