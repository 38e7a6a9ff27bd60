"""Recalculates what credit must satisfy, and reports every difference."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Final

from django.db import connection, transaction
from django.utils.translation import gettext_lazy as _

from credit.engine.explanation import DEFAULT_RULES
from credit.models import Result
from credit.statistics import sql
from portal.extras import site_apps
from portal.maintenance.jobs import Job


class Owner(StrEnum):
    """Whose credit is summed, by the name of the column."""

    USER = "user_id"
    HOST = "host_id"
    VERSION = "app_version_id"


def differences() -> list[str]:
    """Return a sentence for each invariant that does not hold (docs/explanation/validator.md, "Checks").

    All statements see the same snapshot: otherwise results archived between two of them would be in neither. A caller's
    own transaction is left alone.
    """
    begins = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if begins:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return list(_differences())


def _differences() -> Iterator[str]:
    with connection.cursor() as cursor:
        for kind, owner, statement in (
            ("user", Owner.USER, sql.WRONG_USER_TOTALS),
            ("host", Owner.HOST, sql.WRONG_HOST_TOTALS),
        ):
            cursor.execute(statement, _archived(owner))
            for id_, total, earned in cursor.fetchall():
                yield f"{kind} {id_}: has {total or 0} credits in total, but its results add up to {earned or 0}"
        cursor.execute(sql.WRONG_VERSION_TOTALS, _archived(Owner.VERSION))
        for version, total, count, earned, nresults in cursor.fetchall():
            yield (
                f"version {version}: has {total} credits in total for {count} results, "
                f"but its results add up to {earned} for {nresults}"
            )
        cursor.execute(sql.DANGLING_RESULTS)
        for result, missing in cursor.fetchall():
            yield f"result {result}: its {missing} does not exist"
        cursor.execute(sql.WRONG_CANONICAL_RESULTS)
        for workunit, fault in cursor.fetchall():
            yield f"workunit {workunit}: {fault}"
        cursor.execute(sql.WRONG_GRANTS)
        for result, fault in cursor.fetchall():
            yield f"result {result}: {fault}"
        cursor.execute(sql.WRONG_PARTS)
        for result, credit, parts in cursor.fetchall():
            yield f"result {result}: its parts add up to {parts} credits, but it got {credit} while it ran"
        cursor.execute(sql.WRONG_CLAIMS, [[rule.value for rule in sorted(DEFAULT_RULES)]])
        for result, stored, computed in cursor.fetchall():
            yield f"result {result}: claimed {_float(stored)} FLOPs, but its numbers give {_float(computed)}"


def _float(number: Decimal | None) -> float | None:
    return None if number is None else float(number)


def _archived(owner: Owner) -> list[list[int] | list[float]]:
    """Return the three arrays for the statements: owners, counts of granted results, credit."""
    rows = [row for app in site_apps() for row in app.archived_credit(owner)]
    return [[row.owner_id for row in rows], [row.ngranted for row in rows], [row.credit for row in rows]]


CREDIT: Final = Job(
    "check_credit",
    _("Validated credit"),
    _(
        "Checks that the totals of volunteers, computers and versions, the canonical results and the stored claims "
        "follow from the results."
    ),
    differences,
    size=lambda: f"{Result.objects.count():,} results",
)
