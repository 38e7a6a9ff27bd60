"""Sums of the daily history by month. A task closes a month when reports for it can no longer arrive.

A closed month's sums always equal those of its days: code that writes days of a closed month writes its sums in the
same transaction, and holds ``LOCK_MONTHS`` from before it reads until its end, as merging, erasing and the import of
statistics do. Reports need not: they write the day on which they arrive. Pages read open months by day.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Final

from django.db import connection, transaction

from accounting.ledger import sql
from accounting.ledger.partitions import month_of, next_month
from accounting.models import ClosedMonths

# A report is written within seconds of its time.
CLOSED_AFTER: Final = dt.timedelta(days=1)
_ONE_DAY: Final = dt.timedelta(days=1)


def closed_until() -> dt.date | None:
    """Read the first month that is not closed; None: no month is closed. One statement."""
    return ClosedMonths.objects.values_list("until", flat=True).first()


def split(
    first: dt.date, last: dt.date, until: dt.date | None, apart: Collection[dt.date] = ()
) -> tuple[list[tuple[dt.date, dt.date]], list[dt.date]]:
    """Split the days from ``first`` to ``last`` into ranges to read by day, with both ends, and whole closed months.

    ``until``: `closed_until`. ``apart``: months to be read by day.
    """
    days: list[tuple[dt.date, dt.date]] = []
    months: list[dt.date] = []
    begin = first
    while begin <= last:
        end = min(last, next_month(month_of(begin)) - _ONE_DAY)
        is_whole = begin.day == 1 and (end + _ONE_DAY).day == 1
        if until is not None and is_whole and begin < until and begin not in apart:
            months.append(begin)
        elif days and days[-1][1] + _ONE_DAY == begin:
            days[-1] = (days[-1][0], end)
        else:
            days.append((begin, end))
        begin = end + _ONE_DAY
    return days, months


def close_months(now: dt.datetime, since: dt.date | None = None) -> int:
    """Close finished months, each in its own transaction; return how many. Safe to repeat and to interrupt.

    ``since``: days from this one on were rewritten, so their months are summed up again. Without it, stops if another
    transaction is writing days of closed months; the next run continues.
    """
    if since is not None:
        _reopen(month_of(since))
    nclosed = 0
    last = month_of((now.astimezone(dt.UTC) - CLOSED_AFTER).date())
    while _close_next(last, waits=since is not None):
        nclosed += 1
    return nclosed


def _reopen(first: dt.date) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.WAIT_FOR_LOCK, [sql.AdvisoryLock.MONTHS.value])
        if ClosedMonths.objects.filter(until__gt=first).update(until=first):
            for statement in sql.FORGET_MONTHS:
                cursor.execute(statement, {"first": first})


def _close_next(last: dt.date, *, waits: bool) -> bool:
    """Close the first open month if it is before ``last``. Reads days, locks only the sums that it writes."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.WAIT_FOR_LOCK if waits else sql.TRY_LOCK, [sql.AdvisoryLock.MONTHS.value])
        if cursor.fetchone() == (False,):
            return False
        month = closed_until()
        if month is None:
            cursor.execute(sql.OLDEST_DAY)
            (oldest,) = cursor.fetchone() or (None,)
            if oldest is None:
                return False
            month = month_of(oldest)
        if month >= last:
            return False
        params = {"month": month, "next": next_month(month)}
        for statement in sql.CLOSE_MONTH:
            cursor.execute(statement, params)
        ClosedMonths.objects.update_or_create(pk=ClosedMonths.THE_ROW, defaults={"until": params["next"]})
    return True
