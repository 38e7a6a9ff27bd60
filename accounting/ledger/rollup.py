"""Sums that no request writes: of projects by day, of volunteers by project, and of months. Run by a task.

Each run reads the days again and overwrites the sums, so it may run twice, or at any time. Months are closed once
(accounting/ledger/months.py).
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from accounting.ledger import sql
from accounting.ledger.months import close_months
from accounting.models import UserProject

# Half-life of the recent average (BOINC protocol, estimated credit: project-side average).
HALF_LIFE_DAYS: Final = 7.0
# Days before this many contribute less than 1e-4 of their credit to the average.
AVERAGED_DAYS: Final = 100


def roll_up(now: dt.datetime, since: dt.date | None = None) -> bool:
    """Update the sums from day ``since`` on; return False if another run is doing it.

    Default: from where the last run left off, but at least from yesterday.
    """
    close_months(now, since)
    today = now.date()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.TRY_LOCK, [sql.AdvisoryLock.ROLL_UP.value])
        if cursor.fetchone() != (True,):
            return False
        first = since or _unfinished(cursor, today - dt.timedelta(days=1))
        cursor.execute(sql.ROLL_UP_PROJECT_DAYS, {"now": now, "first": first, "today": today})
        cursor.execute(
            sql.ROLL_UP_USER_PROJECTS,
            {
                "now": now,
                "today": today,
                "since": now - dt.timedelta(days=AVERAGED_DAYS),
                "averaged": today - dt.timedelta(days=AVERAGED_DAYS),
                "half_life": HALF_LIFE_DAYS,
                # How much of today is over.
                "part": (now - dt.datetime.combine(today, dt.time(), dt.UTC)) / dt.timedelta(days=1),
            },
        )
    return True


def _unfinished(cursor: CursorWrapper, yesterday: dt.date) -> dt.date:
    cursor.execute(sql.FIRST_UNFINISHED_DAY)
    row = cursor.fetchone()
    return min(yesterday, row[0]) if row is not None and row[0] is not None else yesterday


def average_of(row: UserProject, now: dt.datetime) -> float:
    """Return the recent average, credits a day, as of now: the stored one, decayed as if nothing came since."""
    if row.avg_at is None:
        return 0.0
    return float(row.avg_ec * 0.5 ** (max(now - row.avg_at, dt.timedelta()) / dt.timedelta(days=HALF_LIFE_DAYS)))
