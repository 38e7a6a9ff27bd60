"""Count the credit of listed volunteers: a few statements, however many there are. Safe to repeat."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection, transaction

from extras.top_lists import sql


class AppCredit(NamedTuple):
    """The credit granted for a volunteer's tasks of an app."""

    user_id: int
    app_id: int
    credit: float


def count() -> None:
    """Count total credit and recent average of listed volunteers and of teams."""
    # Separately, so that neither waits for the other's locks.
    for statement in (sql.COUNT_VOLUNTEERS, sql.COUNT_TEAMS):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, {"user": None})


def count_apps() -> None:
    """Count the credit of listed volunteers for each app. One statement reads, a transaction writes."""
    with connection.cursor() as cursor:
        cursor.execute(sql.GRANTED_FOR_APPS)
        sums = [AppCredit(*row) for row in cursor.fetchall()]
    with transaction.atomic(), connection.cursor() as cursor:
        columns = _columns(sums)
        cursor.execute(sql.KEEP_APP_CREDIT, columns)
        cursor.execute(sql.DROP_APP_CREDIT, columns[:2])


def _columns(rows: list[AppCredit]) -> tuple[list[int], list[int], list[float]]:
    return [row.user_id for row in rows], [row.app_id for row in rows], [row.credit for row in rows]
