"""Thins out old snapshots to one a day, so that charts of years stay small."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import connection, transaction

from credit.statistics import sql

WHOLE: Final = dt.timedelta(days=31)
"""Younger snapshots all stay."""
BATCH: Final = 10_000


def thin_snapshots(now: dt.datetime, batch: int = BATCH) -> int:
    """Delete all but the last snapshot of each older UTC day; return their number. Each batch commits separately.

    Safe to run twice, and beside the feeder, which adds younger ones only.
    """
    today = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return sum(_thin(statement, today - WHOLE, batch) for statement in sql.THIN_SNAPSHOTS)


def _thin(statement: str, before: dt.datetime, batch: int) -> int:
    total = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, {"before": before, "limit": batch})
            count: int = cursor.rowcount
        total += count
        if count < batch:
            return total
