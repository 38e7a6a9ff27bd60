"""Two records of one computer become one: its results, statistics and credit follow to the record that stays.

Runs inside the transaction that joins them (`portal.computers.host_changes.merge_hooks`). Locks in the order of all
parts of the project server: computers, workunits by id, results, (host, version) records, sums of credit.
"""

from __future__ import annotations

from typing import Final

from django.db import IntegrityError, connection, transaction

from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from credit.models import HostCredit

_STATEMENTS: Final = (
    "SELECT FROM portal_host WHERE id IN (%(older)s, %(newer)s) ORDER BY id FOR NO KEY UPDATE",
    """SELECT FROM credit_workunit w
 WHERE w.id IN (SELECT workunit_id FROM credit_result WHERE host_id = %(older)s) ORDER BY w.id FOR NO KEY UPDATE""",
    "UPDATE credit_result SET host_id = %(newer)s WHERE host_id = %(older)s",
    "SELECT FROM credit_hostappversion WHERE host_id IN (%(older)s, %(newer)s) ORDER BY id FOR NO KEY UPDATE",
)
_RECORDS: Final = (
    # What the record in use knows of a version is fresher: where both know it, that stays.
    """DELETE FROM credit_hostappversion o USING credit_hostappversion n
 WHERE o.host_id = %(older)s AND n.host_id = %(newer)s
   AND (n.app_version_id = o.app_version_id
        OR n.app_version_id IS NULL AND o.app_version_id IS NULL AND n.app_id = o.app_id
           AND n.processor_type = o.processor_type)""",
    "UPDATE credit_hostappversion SET host_id = %(newer)s WHERE host_id = %(older)s",
)

ATTEMPTS: Final = 10


def follow(older_id: int, newer_id: int) -> None:
    """Move what the older record has to the newer one; safe to repeat."""
    hosts = {"older": older_id, "newer": newer_id}
    with connection.cursor() as cursor:
        for statement in _STATEMENTS:
            cursor.execute(statement, hosts)
    for attempt in range(ATTEMPTS):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                for statement in _RECORDS:
                    cursor.execute(statement, hosts)
            break
        except IntegrityError:
            # A validator made a record for the computer in use between the two statements.
            if attempt == ATTEMPTS - 1:
                raise
    _join_credit(older_id, newer_id)


def _join_credit(older_id: int, newer_id: int) -> None:
    """Totals are added; so are recent averages, as they are at the later one's time."""
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
    older.delete()
    newer.save()
