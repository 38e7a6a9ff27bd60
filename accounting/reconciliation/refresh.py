"""After statistics were read, settle the grants, and compare them with the estimates. Run by a task."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.db import connection, transaction

from accounting.engine.reconciliation import LEAST_ESTIMATE, SETTLING_DAYS, expected_range
from accounting.reconciliation import sql

MOST_GRANTED: Final = 9 * 10**18
"""Micro-credits of a computer at a project, about the most that 64 bits hold: only a fraudulent project grants more."""


def refresh_due(now: dt.datetime) -> int:
    """Settle every project whose statistics were read since the last run, each in its own transaction; return how
    many.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.DUE)
        due = [project_id for (project_id,) in cursor]
    for project_id in due:
        refresh(project_id, now)
    return len(due)


def refresh(project_id: int, now: dt.datetime) -> None:
    """Settle a project; safe to repeat. Locks the ledger rows of its new computers, then its settlements, by id."""
    today = now.astimezone(dt.UTC).date()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.AS_OF, {"project": project_id})
        row = cursor.fetchone()
        if row is None or row[0] is None:
            return
        params: dict[str, Any] = {
            "project": project_id,
            "as_of": row[0],
            "read_on": row[0].astimezone(dt.UTC).date(),
            "today": today,
            "least": LEAST_ESTIMATE,
            "most": MOST_GRANTED,
            "old_enough": today - _LONG,
        }
        cursor.execute(sql.NEW, params)
        params["new"] = [host_id for (host_id,) in cursor]
        for statement in (sql.LOCK_NEW, sql.LOCK, sql.BEGIN, sql.ADD_GRANTS, sql.MEDIAN):
            cursor.execute(statement, params)
        state = cursor.fetchone()
        assert state is not None  # an aggregate always has a row
        params["median"], params["computers"] = state
        params["low"], params["high"] = expected_range(params["median"], params["computers"])
        cursor.execute(sql.MARK, params)
        cursor.execute(sql.KEEP_RATIO, params)


# Earlier, work in progress would dominate the ratio.
_LONG: Final = dt.timedelta(days=SETTLING_DAYS)
