"""Forecasts of when a batch will be done, from the queue and from recent results."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.core.cache import cache
from django.db import connection

from credit.models import Batch
from scheduler.engine.submission.forecast import Forecast, GrantedResult, OpenWork, RecentResults, forecast
from scheduler.submission import sql
from scheduler.wire.job_fields import SubmittedJob

MOST_RESULTS: Final = 20_000
"""The number of newest results that are read."""
MOST_DAYS: Final = 7
KEPT_SECS: Final = 60
"""A page that is reloaded repeatedly must not read a long queue each time."""


@dataclass(frozen=True, slots=True)
class BatchForecast:
    """The earliest and latest time at which a batch will be done, as of a time; both None: there is no forecast."""

    made_at: dt.datetime
    earliest_at: dt.datetime | None = None
    latest_at: dt.datetime | None = None


def read_forecast(batch: Batch, now: dt.datetime) -> BatchForecast:
    """Return the batch's forecast from the last minute, or make one with two statements."""
    key = f"batch_forecast:{batch.pk}"
    if cached := cache.get(key):
        return BatchForecast(*(at and dt.datetime.fromisoformat(at) for at in cached))
    made = _read(batch, now)
    times = (made.made_at, made.earliest_at, made.latest_at)
    cache.set(key, [at and at.isoformat() for at in times], timeout=KEPT_SECS)
    return made


def of_jobs(app_id: int, owner_id: int | None, jobs: Sequence[SubmittedJob], now: dt.datetime) -> BatchForecast:
    """Forecast when these jobs would be done if they were submitted now. Two statements."""
    if not jobs:
        return BatchForecast(now)
    fields = [job.fields for job in jobs]
    own = sum(one["fpops_est"] * one["target_nresults"] for one in fields)
    values = {
        "app": app_id,
        "owner": owner_id,
        "priority": min(one["priority"] for one in fields),
        "now": now,
        "span_secs": _span_secs(),
    }
    waiting, part = _row(sql.WAITING, values)
    # While its jobs are sent, the others get their shares of the queue, as long as they have anything in it.
    ahead = own + min(waiting, own * (1 - part) / part)
    ncopies = sum(one["target_nresults"] for one in fields)
    left = OpenWork(own, ahead, part, ncopies, (), max(one["delay_bound_secs"] for one in fields))
    return _told(forecast(_lately(app_id, now), left), now)


def _told(earliest_and_latest: Forecast | None, now: dt.datetime) -> BatchForecast:
    if earliest_and_latest is None:
        return BatchForecast(now)
    return BatchForecast(now, *(now + dt.timedelta(seconds=min(secs, 1e9)) for secs in earliest_and_latest))


def _read(batch: Batch, now: dt.datetime) -> BatchForecast:
    left = _left(batch, now)
    return _told(forecast(_lately(batch.app_id, now), left) if left.nunsent or left.out_secs else None, now)


def _span_secs() -> float:
    """Return the period of results to read; older ones may be archived."""
    return 86_400.0 * min(MOST_DAYS, settings.JOBS_KEPT_DAYS)


def _lately(app_id: int, now: dt.datetime) -> RecentResults:
    values = {"app": app_id, "now": now, "span_secs": _span_secs(), "most": MOST_RESULTS}
    granted, span_secs, nlost = _row(sql.GRANTED_LATELY, values)
    return RecentResults([GrantedResult(*row) for row in granted or ()], span_secs or 0.0, nlost)


def _left(batch: Batch, now: dt.datetime) -> OpenWork:
    values = {
        "batch": batch.pk,
        "app": batch.app_id,
        "owner": batch.owner_id,
        "now": now,
        "span_secs": _span_secs(),
    }
    return OpenWork(*_row(sql.LEFT, values))


def _row(statement: str, values: dict[str, Any]) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] = cursor.fetchone()
        return row
