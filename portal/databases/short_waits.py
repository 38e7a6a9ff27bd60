"""Transactions that need locks on which others depend: they wait for them shortly, and try again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

WAIT: Final = "500ms"
"""Shorter than PostgreSQL waits before it looks for a deadlock, of which the other one may be a client's report."""
ATTEMPTS: Final = 60
PAUSE_SECS: Final = 1.0


def in_short_waits(change: Callable[[], None]) -> None:
    """Do it in a transaction of its own; again from the start until it gets all locks that it needs.

    Raises OperationalError if others hold one all the time.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction.atomic():
                limit_waits(WAIT)
                change()
            return
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable) or attempt == ATTEMPTS:
                raise
            # Nothing tells when a lock is free but to wait for it, and who waits holds up all who come later: they are
            # served before the next attempt.
            time.sleep(PAUSE_SECS)


def limit_waits(wait: str) -> None:
    """For the rest of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [wait])
