"""Jobs that can never be sent: those that still wait when their app gets no more jobs.

Without an end they would keep their batches open for ever. An operator who ticks “no more jobs” by mistake has until
the next hourly pass to untick it. Locks: workunits by id, SKIP LOCKED, then results.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.db import connection, transaction

from credit.models import App

log = structlog.get_logger(__name__)
BATCH: Final = 1000
_LOCK: Final = """
SELECT id FROM credit_workunit WHERE id IN (
       SELECT workunit_id FROM credit_result WHERE app_id = %(app)s AND server_state = 2 LIMIT %(limit)s)
 ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
_END: Final = """
WITH ended AS (
  UPDATE credit_result SET server_state = 5, outcome = 2
   WHERE workunit_id = ANY (%(ids)s) AND server_state = 2 RETURNING workunit_id)
UPDATE credit_workunit w SET transition_at = least(w.transition_at, %(now)s)
 WHERE w.id IN (SELECT workunit_id FROM ended)
"""


def run(now: dt.datetime) -> int:
    """End them; how many workunits that concerned. The transitioner then ends those with the reason."""
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
        cursor.execute(_LOCK, {"app": app.pk, "limit": BATCH})
        ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(_END, {"ids": ids, "now": now})
        return int(cursor.rowcount)
