"""The monthly partitions of the daily history. A task creates them ahead; a request creates one that is missing."""

from __future__ import annotations

import datetime as dt

from django.db import connection, transaction

from accounting.ledger import sql


def month_of(day: dt.date) -> dt.date:
    return day.replace(day=1)


def next_month(month: dt.date) -> dt.date:
    return (month.replace(day=28) + dt.timedelta(days=4)).replace(day=1)


def partition_of(month: dt.date) -> str:
    """Return the name of the month's table."""
    return f"accounting_day_{month:%Y_%m}"


def create_months(first: dt.date, last: dt.date) -> list[str]:
    """Create the missing partitions of the months from ``first`` to ``last`` (days in them); return their names."""
    created = []
    month = month_of(first)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.WAIT_FOR_LOCK, [sql.AdvisoryLock.PARTITIONS.value])
        while month <= last:
            name = partition_of(month)
            cursor.execute("SELECT to_regclass(%s)", [name])
            if cursor.fetchone() == (None,):
                cursor.execute(sql.CREATE_PARTITION.format(name=name), [month, next_month(month)])
                created.append(name)
            month = next_month(month)
    return created


_known_months: set[dt.date] = set()


def is_partition_known(day: dt.date) -> bool:
    """Whether this process has seen that the partition of ``day`` exists."""
    return month_of(day) in _known_months


def ensure_partition(day: dt.date) -> None:
    """Create the partition of ``day`` if it is missing: one look-up per process and month, so that no report is lost if
    the task that creates partitions ahead did not run.
    """
    month = month_of(day)
    if month not in _known_months:
        create_months(month, month)
        # The transaction may still be rolled back, so the month is looked up again next time.
        if not connection.in_atomic_block:
            _known_months.add(month)
