"""A volunteer's tasks of one app of this site's own project, by day, week or month and by computer."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final, NamedTuple

from django.db import connection

from credit.app_history import sql

_BEFORE_ALL: Final = (dt.date.min, 0)


class AppWork(NamedTuple):
    """What a computer's tasks of the app earned in a step, which begins at ``start``.

    Credit and seconds are in millionths. ``host_id``: 0 for computers that are not known any more.
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
        """The six amounts, in the order of a history."""
        return self[2:]


class AppDays(NamedTuple):
    """Which tasks: a volunteer's, of an app, on the days from ``first`` to ``last``; on one computer if it is given."""

    user_id: int
    app_id: int
    first: dt.date
    last: dt.date
    host_id: int | None = None

    @property
    def _params(self) -> dict[str, Any]:
        return {"user": self.user_id, "app": self.app_id, "host": self.host_id, "first": self.first, "last": self.last}


def read_steps(wanted: AppDays, step: str) -> list[AppWork]:
    """The sums of each ``step`` (day, week, month) and computer, in the order of time. One statement."""
    if step == "day":
        return read_days(wanted, None)
    return _read(sql.STEPS, {**wanted._params, "step": step})


def read_days(wanted: AppDays, limit: int | None, after: tuple[dt.date, int] | None = None) -> list[AppWork]:
    """The first ``limit`` days and computers (None: all) after one of them, in their order. One statement."""
    after_day, after_host = after or _BEFORE_ALL
    place = {"after_day": after_day, "after_host": after_host, "limit": limit}
    return _read(sql.DAYS, {**wanted._params, **place})


def _read(statement: str, params: dict[str, Any]) -> list[AppWork]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return [AppWork(start, host or 0, *map(int, amounts)) for start, host, *amounts in cursor.fetchall()]


def read_apps() -> list[tuple[int, str]]:
    """The apps of this site's own project, with their names. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql.APPS)
        return [(pk, name) for pk, name in cursor.fetchall()]
