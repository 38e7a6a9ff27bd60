"""Thins out old figures: after some days to one an hour, after a month to one a day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

from django.db import connection, transaction

WHOLE: Final = dt.timedelta(days=3)
HOURLY: Final = dt.timedelta(days=31)
BATCH: Final = 10_000
# Locks the rows that it deletes. It looks only at whole hours and days, whose last values are there already.
_THIN: Final = """
DELETE FROM portal_operatingfigure WHERE id IN (
  SELECT id FROM (
    SELECT id, lead(taken_at) OVER (PARTITION BY name, label, date_trunc(%(unit)s, taken_at, 'UTC') ORDER BY taken_at)
               AS later
      FROM portal_operatingfigure WHERE taken_at < %(before)s AND taken_at >= %(since)s) AS old
   WHERE later IS NOT NULL LIMIT %(limit)s)
"""


def thin(now: dt.datetime, batch: int = BATCH) -> int:
    """Delete all but the last figure of each older hour and day (UTC); return their number. Safe to run twice."""
    day = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    oldest = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
    spans = ("hour", day - HOURLY, day - WHOLE), ("day", oldest, day - HOURLY)
    return sum(
        delete_in_batches(_THIN, {"unit": unit, "since": since, "before": before}, batch)
        for unit, since, before in spans
    )


def delete_in_batches(statement: str, values: Mapping[str, str | dt.datetime], batch: int) -> int:
    """Repeat a statement that deletes at most ``limit`` rows until it finds fewer; return how many rows were deleted.

    Each batch is a transaction of its own.
    """
    total = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, {**values, "limit": batch})
            count: int = cursor.rowcount
        total += count
        if count < batch:
            return total
