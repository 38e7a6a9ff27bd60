"""Jobs that can never be sent: those that still wait when their app gets no more jobs.

Otherwise their batches would stay open for ever. An operator who ticks “no more jobs” by mistake has until the next
hourly pass to untick it. Locks: workunits by id, SKIP LOCKED, then results.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.db import connection, transaction

from credit.models import App
from scheduler.lifecycle import sql

log = structlog.get_logger(__name__)
BATCH: Final = 1000


def run(now: dt.datetime) -> int:
    """End these jobs; return the number of their workunits.

    The transitioner then ends the workunits with the reason.
    """
    total = 0
    for app in App.objects.filter(is_deprecated=True):
        count = 0
        while done := _end_some(app, now):
            count += done
        if count:
            log.info("jobs_could_not_be_sent", app=app.name, workunits=count)
        total += count
    return total


def _end_some(app: App, now: dt.datetime) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_UNSENDABLE, {"app": app.pk, "limit": BATCH})
        ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(sql.END_UNSENDABLE, {"ids": ids, "now": now})
        return int(cursor.rowcount)
