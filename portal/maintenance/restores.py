"""After a restore: what keeps new data apart from what was lost, and whether all that is there adds up."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from django.db import connection

from portal.maintenance.jobs import jobs


def prepare() -> Iterator[str]:
    """Do what keeps new data apart from what was lost; a sentence about each."""
    for job in jobs.values():
        if job.after_restore:
            yield from job.run()


def differences() -> Iterator[str]:
    """What the checks of the data find, a sentence each."""
    for job in jobs.values():
        if job.size is not None:
            yield from job.run()


def summary() -> str:
    sizes = [job.size() for job in jobs.values() if job.size is not None]
    return f"{_last_commit()}; {', '.join(sizes)}"


def _last_commit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_last_xact_replay_timestamp()")
        (moment,) = cursor.fetchone()
    if moment is None:
        # The server has not recovered since it started: the data are from a dump.
        return "No recovery, so its last commit is not known"
    return f"Last commit at {moment.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
