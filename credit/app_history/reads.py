"""A volunteer's tasks of one app of this site's own project, by day, week or month and by computer."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final, NamedTuple

from django.db import connection

from credit.app_history import sql

_BEFORE_ALL: Final = (dt.date.min, 0)


class AppWork(NamedTuple):
    """What a computer's tasks of the app earned in one step (day, week or month), which begins at ``start``.

    Credit and seconds are in millionths. ``host_id`` is 0 for computers that are no longer known.
    """

    start: dt.date
    host_id: int
    cpu_credit: int
    gpu_credit: int
    cpu_time: int
    gpu_time: int
    nsucceeded: int
    nfailed: int

    @property
    def amounts(self) -> tuple[int, ...]:
        """Return the six amounts, in the order of a history."""
        return self[2:]


class AppDays(NamedTuple):
    """Select a volunteer's tasks of an app on the days from ``first`` to ``last``, optionally on one computer only."""

    user_id: int
    app_id: int
    first: dt.date
    last: dt.date
    host_id: int | None = None

    @property
    def _params(self) -> dict[str, Any]:
        return {"user": self.user_id, "app": self.app_id, "host": self.host_id, "first": self.first, "last": self.last}


def read_steps(selection: AppDays, step: str) -> list[AppWork]:
    """Return the sums for each ``step`` (day, week, month) and computer, in order of time. One statement."""
    if step == "day":
        return read_days(selection, None)
    return _read(sql.STEPS, {**selection._params, "step": step})


def read_days(selection: AppDays, limit: int | None, after: tuple[dt.date, int] | None = None) -> list[AppWork]:
    """Return up to ``limit`` days and computers (None: all), in order, starting after ``after``. One statement."""
    after_day, after_host = after or _BEFORE_ALL
    place = {"after_day": after_day, "after_host": after_host, "limit": limit}
    return _read(sql.DAYS, {**selection._params, **place})


def _read(statement: str, params: dict[str, Any]) -> list[AppWork]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return [AppWork(start, host or 0, *map(int, amounts)) for start, host, *amounts in cursor.fetchall()]


def read_apps() -> list[tuple[int, str]]:
    """Return the apps of this site's own project, with their names. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql.APPS)
        return [(pk, name) for pk, name in cursor.fetchall()]
