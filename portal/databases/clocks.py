"""The database's time, and how far this machine's clock is off."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any, Final, cast

from django.db import connection

WARN_SECS: Final = 2.0
WORST_SECS: Final = 60.0
"""A machine whose clock is off by more should not answer anybody."""
_ASK: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"


def ahead_secs(session: Any) -> float:
    """How far this machine's clock is ahead, or behind if negative; ``session``: a cursor or connection of psycopg."""
    asked_at = time.time()
    (database_at,) = session.execute(_ASK).fetchone()
    return float((asked_at + time.time()) / 2 - database_at)


def database_now() -> dt.datetime:
    """The database's time, for background work that decides what is due, over or paid: any machine may do it, and all
    should agree. One statement.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (moment,) = cursor.fetchone()
    return cast("dt.datetime", moment)
