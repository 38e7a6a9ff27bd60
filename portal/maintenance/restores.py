"""After a restore: keeps new data distinct from lost data, and checks that all that is there adds up."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from django.db import connection, models
from django.utils import timezone

from portal.maintenance import sql
from portal.maintenance.jobs import jobs
from portal.models import Host

GAP: Final = 1_000_000
"""A gap in the numbers of rows, larger than the number of rows made since any backup."""


def leave_gap(model: type[models.Model], now: dt.datetime) -> int:
    """Make numbers of new rows begin above the returned one, far from any that was used.

    It is at least the number of minutes since 1970, so a second restore of one backup does not repeat the first's.
    """
    values: dict[str, str | int] = {"table": model._meta.db_table, "gap": GAP, "minutes": int(now.timestamp()) // 60}
    with connection.cursor() as cursor:
        cursor.execute(sql.LEAVE_GAP, values)
        return int(cursor.fetchone()[0])


def prepare() -> Iterator[str]:
    """Keep new data distinct from lost data; yields a sentence about each step."""
    yield f"The next computer has a number above {leave_gap(Host, timezone.now())}."
    for job in jobs().values():
        if job.after_restore:
            yield from job.run()


def differences() -> Iterator[str]:
    """Yield the findings of all checks of the data, a sentence each."""
    for job in jobs().values():
        if job.size is not None:
            yield from job.run()


def summary() -> str:
    sizes = [job.size() for job in jobs().values() if job.size is not None]
    return f"{_last_commit()}; {', '.join(sizes)}"


def _last_commit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_last_xact_replay_timestamp()")
        (moment,) = cursor.fetchone()
    if moment is None:
        # The server has not recovered since it started, so the data comes from a dump.
        return "No recovery, so its last commit is not known"
    return f"Last commit at {moment.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
