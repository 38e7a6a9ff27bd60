"""Thins out old snapshots to one a day, so that charts of years stay small."""

from __future__ import annotations

import datetime as dt
from typing import Final

from credit.statistics import sql
from portal.dashboard.thinning import delete_in_batches

WHOLE: Final = dt.timedelta(days=31)
"""Younger snapshots all stay."""
BATCH: Final = 10_000


def thin_snapshots(now: dt.datetime, batch: int = BATCH) -> int:
    """Delete all but the last snapshot of each older UTC day; return their number. Each batch commits separately.

    Safe to repeat, and to run alongside the feeder, which only adds younger ones.
    """
    today = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return sum(delete_in_batches(statement, {"before": today - WHOLE}, batch) for statement in sql.THIN_SNAPSHOTS)
