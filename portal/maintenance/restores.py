"""After a restore: what keeps new data apart from what was lost, and whether all that is there adds up."""

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
"""In the numbers of rows: more than were made since any backup."""


def leave_gap(model: type[models.Model], now: dt.datetime) -> int:
    """New rows get numbers above the one that is returned, far from any that was used.

    It is not below the minutes since 1970: so a second restore of one backup does not repeat the numbers of the first.
    """
    values: dict[str, str | int] = {"table": model._meta.db_table, "gap": GAP, "minutes": int(now.timestamp()) // 60}
    with connection.cursor() as cursor:
        cursor.execute(sql.LEAVE_GAP, values)
        return int(cursor.fetchone()[0])


def prepare() -> Iterator[str]:
    """Do what keeps new data apart from what was lost; a sentence about each."""
    yield f"The next computer has a number above {leave_gap(Host, timezone.now())}."
    for job in jobs().values():
        if job.after_restore:
            yield from job.run()


def differences() -> Iterator[str]:
    """What the checks of the data find, a sentence each."""
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
        # The server has not recovered since it started: the data are from a dump.
        return "No recovery, so its last commit is not known"
    return f"Last commit at {moment.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
