"""The projects' standings: a task derives them from what all volunteers' computers report.

A project that has no work, or does not answer, is passed over for a while. A project that got less than its share in
the last week is offered more. Each run derives both from scratch, so a run may be repeated at any time.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.db import connection, transaction

from accounting.choosing import sql
from accounting.engine.choice.balance import WEEK_DAYS, ProjectBalance, Week, rebalance, sum_up
from accounting.engine.choice.facts import CPU, ProjectFacts, TroubleKind
from accounting.ledger.sql import TRY_LOCK, AdvisoryLock
from accounting.models import Project, ProjectStanding, ProjectTrouble
from accounting.rpc.catalogue import facts_of, with_facts

# How long a report counts, and how long a trouble lasts when no computer can report on it any more.
FRESH: Final = dt.timedelta(days=1)
# A trouble counts if more than half of the volunteers report it, and at least this many: a few cannot starve a project.
MIN_VOLUNTEERS: Final = 3
# Computers that have not reported for this long do not count.
GONE: Final = dt.timedelta(days=3)


def refresh(now: dt.datetime) -> bool:
    """Update the troubles, and once a day the standings; return False if another run is doing it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TRY_LOCK, [AdvisoryLock.STANDINGS.value])
        if cursor.fetchone() != (True,):
            return False
        _refresh_troubles(now)
        if not ProjectStanding.objects.filter(day__gte=now.date()).exists():
            _refresh_standings(now)
    return True


def _refresh_troubles(now: dt.datetime) -> None:
    troubles = {(row.project_id, row.kind, row.processor_type): row for row in ProjectTrouble.objects.all()}
    asked = set()
    for project_id, kind, type_, says, of in _rows(sql.TROUBLES_SAID, {"since": now - FRESH}):
        key = project_id, kind, type_
        asked.add(key)
        row = troubles.get(key)
        if says >= MIN_VOLUNTEERS and 2 * says > of:
            row = row or ProjectTrouble(project_id=project_id, kind=kind, processor_type=type_, since=now)
            row.last_at, row.volunteers, row.of_volunteers = now, says, of
            row.save()
        elif row is not None and of > 0:
            row.delete()
    # No computer is left that could report its end.
    for key, row in troubles.items():
        if key not in asked and now - row.last_at > FRESH:
            row.delete()


def _refresh_standings(now: dt.datetime) -> None:
    today = now.date()
    midnight = dt.datetime.combine(today, dt.time(), dt.UTC)
    params = {
        "today": today,
        "midnight": midnight,
        "first": today - dt.timedelta(days=WEEK_DAYS),
        "here_since": now - GONE,
    }
    weeks = _rows(sql.LAST_WEEK, params)
    projects = [facts_of(project) for project in with_facts(Project.objects.all())]
    for on_gpu in (False, True):
        credit = sum_up(Week(host, id_, float(row[on_gpu]), float(days)) for host, id_, *row, days in weeks)
        shares = {p.id: p.share for p in projects if _could_do(p, on_gpu, worked=p.id in credit)}
        boosts = {project.id: project.boosts[on_gpu] for project in projects}
        _store(rebalance(shares, credit, boosts), on_gpu, today)


def _could_do(project: ProjectFacts, on_gpu: bool, *, worked: bool) -> bool:
    """Whether the project can have work for CPUs, or for GPUs. What it loses while it has none is not made up later."""
    if not project.is_active or project.is_down:
        return False
    for trouble in project.troubles:
        if trouble.kind != TroubleKind.NO_WORK or (trouble.processor_type != CPU) == on_gpu:
            return False
    types = {(type_ != CPU) for _, type_ in project.versions}
    return on_gpu in types if types else worked


def _store(standings: dict[int, ProjectBalance], on_gpu: bool, today: dt.date) -> None:
    ProjectStanding.objects.filter(on_gpu=on_gpu).exclude(project_id__in=standings).delete()
    ProjectStanding.objects.bulk_create(
        [
            ProjectStanding(project_id=id_, on_gpu=on_gpu, day=today, **standing._asdict())
            for id_, standing in standings.items()
        ],
        update_conflicts=True,
        unique_fields=["project", "on_gpu"],
        update_fields=["target", "got", "boost", "day"],
    )


def _rows(statement: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
