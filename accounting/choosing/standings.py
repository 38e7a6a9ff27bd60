"""What volunteers' computers say of projects taken together, for the choice of projects. Run by a task.

Who has no work, or does not answer, is passed over for a while; who got less than its share in the last week is offered
more. Both are worked out anew from what computers reported, so a run may be repeated at any time.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.db import connection, transaction

from accounting.engine.choice.balance import WEEK_DAYS, Standing, Week, rebalance, sum_up
from accounting.engine.choice.facts import CPU, ProjectFacts, TroubleKind
from accounting.models import Project, ProjectStanding, ProjectTrouble
from accounting.rpc.catalogue import facts_of, with_facts

# Any number; a second run at the same time has nothing to do.
_LOCK: Final = 7_130_003
# Reports are fresh for so long, and a trouble that no computer can tell of any more is remembered so long.
FRESH: Final = dt.timedelta(days=1)
# A trouble is one if more than half of the volunteers say so, and as many at least: few cannot starve a project.
MIN_VOLUNTEERS: Final = 3
# Computers that have not reported for so long count as gone.
GONE: Final = dt.timedelta(days=3)

# A volunteer says so if all of their computers do that could know: for GPUs, those that have one of the type.
_SAID: Final = """
WITH said AS (
  SELECT p.project_id, h.owner_id, h.coprocs, coalesce(p.state->'troubles', '[]'::jsonb) AS troubles
    FROM accounting_hostproject p
    JOIN portal_host h ON h.id = p.host_id AND h.merged_into_id IS NULL
    JOIN accounting_hostledger l ON l.host_id = p.host_id
   WHERE p.listed AND l.last_at >= %(since)s),
asked AS (
  SELECT s.project_id, s.owner_id, q.kind, q.type,
         bool_and(EXISTS (SELECT FROM jsonb_array_elements(s.troubles) t
                           WHERE t->>0 = q.kind AND t->>1 = q.type)) AS says
    FROM said s, LATERAL (
         SELECT 'no_work' AS kind, 'CPU' AS type
          UNION SELECT 'no_work', d->>'type' FROM jsonb_array_elements(s.coprocs) d WHERE d->>'type' <> ''
          UNION VALUES ('failing', ''), ('ended', '')) q
   GROUP BY s.project_id, s.owner_id, q.kind, q.type)
SELECT project_id, kind, type, count(*) FILTER (WHERE says), count(*) FROM asked WHERE length(type) <= 64
 GROUP BY project_id, kind, type
"""

# Whole days of the last week, of computers that are still there and were never capped in it.
_WEEKS: Final = """
SELECT d.host_id, d.project_id, sum(d.cpu_ec) / 1e6, sum(d.gpu_ec) / 1e6,
       extract(epoch FROM %(midnight)s - h.created_at) / 86400
  FROM accounting_day d
  JOIN portal_host h ON h.id = d.host_id
  JOIN accounting_hostledger l ON l.host_id = d.host_id AND l.last_at >= %(here_since)s
 WHERE d.day >= %(first)s AND d.day < %(today)s
   AND d.host_id NOT IN (SELECT host_id FROM accounting_day
                          WHERE day >= %(first)s AND day < %(today)s AND flags & 1 <> 0)
 GROUP BY d.host_id, d.project_id, h.created_at
"""


def refresh(now: dt.datetime) -> bool:
    """Bring troubles up to date, and once a day the standings; False if another run is at it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        if cursor.fetchone() != (True,):
            return False
        _refresh_troubles(now)
        if not ProjectStanding.objects.filter(day__gte=now.date()).exists():
            _refresh_standings(now)
    return True


def _refresh_troubles(now: dt.datetime) -> None:
    known = {(row.project_id, row.kind, row.processor_type): row for row in ProjectTrouble.objects.all()}
    asked = set()
    for project_id, kind, type_, says, of in _rows(_SAID, {"since": now - FRESH}):
        key = project_id, kind, type_
        asked.add(key)
        row = known.get(key)
        if says >= MIN_VOLUNTEERS and 2 * says > of:
            row = row or ProjectTrouble(project_id=project_id, kind=kind, processor_type=type_, since=now)
            row.last_at, row.volunteers, row.of_volunteers = now, says, of
            row.save()
        elif row is not None and of > 0:
            row.delete()
    # Nobody is left who could say that it is over.
    for key, row in known.items():
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
    weeks = _rows(_WEEKS, params)
    projects = [facts_of(project) for project in with_facts(Project.objects.all())]
    for on_gpu in (False, True):
        credit = sum_up(Week(host, id_, float(row[on_gpu]), float(days)) for host, id_, *row, days in weeks)
        shares = {p.id: p.share for p in projects if _could_do(p, on_gpu, worked=p.id in credit)}
        boosts = {project.id: project.boosts[on_gpu] for project in projects}
        _store(rebalance(shares, credit, boosts), on_gpu, today)


def _could_do(project: ProjectFacts, on_gpu: bool, *, worked: bool) -> bool:
    """Whether the project could do work on CPUs, or on GPUs: what a trouble costs it is not made up for later."""
    if not project.is_active or project.is_down:
        return False
    for trouble in project.troubles:
        if trouble.kind != TroubleKind.NO_WORK or (trouble.processor_type != CPU) == on_gpu:
            return False
    types = {(type_ != CPU) for _, type_ in project.versions}
    return on_gpu in types if types else worked


def _store(standings: dict[int, Standing], on_gpu: bool, today: dt.date) -> None:
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
