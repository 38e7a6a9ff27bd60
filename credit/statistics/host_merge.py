"""Merges two records of one computer: results, statistics and credit move to the record that stays.

Runs inside the caller's transaction (`portal.extras.SiteApp.host_merged`). Locks are taken in the project server's
order: computers, workunits by id, results, (host, version) records, days of archived tasks, sums of credit.
"""

from __future__ import annotations

from typing import Final

from django.db import IntegrityError, connection, transaction

from credit.app_history import sql as app_history
from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from credit.models import HostCredit
from credit.statistics import sql

ATTEMPTS: Final = 10


def merge_host(older_id: int, newer_id: int) -> None:
    """Move the older record's data to the newer one; safe to repeat."""
    hosts = {"older": older_id, "newer": newer_id}
    with connection.cursor() as cursor:
        for statement in sql.MERGE_RESULTS:
            cursor.execute(statement, hosts)
        cursor.execute(app_history.MERGE, hosts)
    for attempt in range(ATTEMPTS):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                for statement in sql.MERGE_RECORDS:
                    cursor.execute(statement, hosts)
            break
        except IntegrityError:
            # A validator created a record for the remaining computer between the two statements.
            if attempt == ATTEMPTS - 1:
                raise
    _join_credit(older_id, newer_id)


def _join_credit(older_id: int, newer_id: int) -> None:
    """Add the totals, and the recent averages as of the later one's time."""
    rows = HostCredit.objects.select_for_update(no_key=True).filter(host__in=(older_id, newer_id)).order_by("host_id")
    credit = {row.host_id: row for row in rows}
    older = credit.get(older_id)
    if older is None:
        return
    newer = credit.get(newer_id) or HostCredit(host_id=newer_id)
    times = [row.expavg_at for row in (older, newer) if row.expavg_at is not None]
    at = max(times, default=None)
    rules = Rules.published()
    if at is not None:
        newer.expavg_credit = sum(
            decayed(row.expavg_credit, row.expavg_at.timestamp() if row.expavg_at else None, at.timestamp(), rules)
            for row in (older, newer)
        )
    newer.expavg_at = at
    newer.total_credit += older.total_credit
    # Both are of one machine, whose time is credited once.
    for kind in ("cpus_credited_until", "gpus_credited_until"):
        setattr(newer, kind, max(filter(None, (getattr(older, kind), getattr(newer, kind))), default=None))
    older.delete()
    newer.save()
