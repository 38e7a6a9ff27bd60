"""Check the ledger's invariants against its own rows (docs/explanation/accounting.md, what holds)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.db import connection
from django.utils.translation import gettext_lazy as _

from accounting.ledger import sql
from accounting.models import Day
from portal.maintenance.jobs import Job


def differences() -> Iterator[str]:
    """Return a sentence for each invariant that does not hold (docs/explanation/accounting.md, what holds)."""
    with connection.cursor() as cursor:
        cursor.execute(sql.CREDITED_IS_SUM_OF_DAYS)
        for host, project, credited, days in cursor.fetchall():
            yield f"host {host}, project {project}: credited {credited}, but the days' sum is {days}"
        cursor.execute(sql.NEGATIVE_TOTAL)
        for host, project in cursor.fetchall():
            yield f"host {host}, project {project}: a total is negative"
        cursor.execute(sql.NEGATIVE_ALLOWANCE)
        for (host,) in cursor.fetchall():
            yield f"host {host}: the allowance is negative"
        cursor.execute(sql.DAYS_OF_OTHER_OWNERS)
        for host, user, owner, rows in cursor.fetchall():
            yield f"host {host}: {rows} days belong to user {user}, the host to {owner}"
        cursor.execute(sql.ROLLED_UP_IS_SUM_OF_DAYS)
        for project, day in cursor.fetchall():
            yield f"project {project}, {day}: the roll-up differs from the days"
        cursor.execute(sql.MONTHS_ARE_SUMS_OF_DAYS)
        for user, month, project, host in cursor.fetchall():
            yield f"user {user}, {month:%Y-%m}, project {project}, host {host}: the month differs from its days"
        cursor.execute(sql.BEST_DAYS_ARE_BEST)
        for user, month in cursor.fetchall():
            yield f"user {user}, {month:%Y-%m}: the best day differs from the days"


LEDGER: Final = Job(
    "check_ledger",
    _("Ledger"),
    _("Checks that the account manager's totals follow from its days."),
    differences,
    size=lambda: f"{Day.objects.count():,} rows of the ledger",
)
