"""The facts of a certificate: from sums of months, and from days where the range begins or ends.

Everything is rounded down to whole credits and hours, so a certificate never overstates.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db import connection

from accounting.engine.amounts import MICRO
from accounting.history.sums import read_first_day
from accounting.ledger.months import closed_until, split
from accounting.models import Project, ProjectKeyword, UserProject
from extras.certificates import sql
from portal.extras import titles_of
from portal.models import User
from portal.wire.keywords import KEYWORDS, SCIENCE, kin
from portal.wire.statements import MAX_NUMBER, Statement

FORMAT: Final = "Cobblestone certificate 1"
ALL: Final = "all"
_HOUR: Final = 3600 * MICRO


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """The certificate that a volunteer wants. ``about``: "all", "project:3" or "subject:9"; ``shows``: names in
    `SHOWN`.
    """

    first: dt.date
    last: dt.date
    about: str
    shows: Collection[str]
    name: str = ""


SHOWN: Final = ("credit", "run_time", "tasks", "computers", "since", "badges")
"""The facts that a certificate can show."""


class NoWork(Exception):
    """There was no work on these days, so there is nothing to certify."""


@dataclass(frozen=True, slots=True)
class Scopes:
    """The possible subjects of a volunteer's certificates: projects that they worked for, and their keywords; by
    key.
    """

    projects: dict[str, Project]
    subjects: dict[str, str]

    def __contains__(self, key: str) -> bool:
        return key == ALL or key in self.projects or key in self.subjects


def read_scopes(user: User) -> Scopes:
    """Read the scopes; two statements."""
    worked_for = UserProject.objects.filter(user=user, total_ec__gt=0).values("project")
    projects = {
        f"project:{project.pk}": project for project in Project.objects.filter(pk__in=worked_for).order_by("name")
    }
    ids = kin(ProjectKeyword.objects.filter(project__in=projects.values()).values_list("keyword", flat=True))
    named = sorted((KEYWORDS[id_].name, id_) for id_ in ids if id_ in KEYWORDS and KEYWORDS[id_].category == SCIENCE)
    return Scopes(projects, {f"subject:{id_}": name for name, id_ in named})


def draft(user: User, request: CertificateRequest, scopes: Scopes, today: dt.date) -> Statement:
    """Build the statement except for its code: at most 16 SQL statements, however long the range is. Raises NoWork.

    It begins with the first day of work, so that a certificate never suggests more years than there were.
    """
    projects = _projects_of(request.about, scopes)
    since = read_first_day(user, today, projects)
    if since is None or since > request.last:
        raise NoWork
    first = max(request.first, since)
    sums = _sums(user, first, request.last, projects)
    if not any(sums):
        raise NoWork
    facts = _facts(sums, request.shows)
    if "since" in request.shows:
        facts["since"] = since.isoformat()
    if "badges" in request.shows:
        facts["badges"] = list(titles_of(user, request.last))
    statement: Statement = {
        "format": FORMAT,
        "site": settings.SITE_URL,
        "made_on": today.isoformat(),
        "first": first.isoformat(),
        "last": request.last.isoformat(),
        "about": _about(request.about, scopes),
        "facts": facts,
    }
    return statement | ({"name": request.name} if request.name else {})


def _about(key: str, scopes: Scopes) -> Statement:
    if key in scopes.projects:
        project = scopes.projects[key]
        return {"kind": "project", "name": project.name, "url": project.master_url}
    if key in scopes.subjects:
        return {"kind": "subject", "name": scopes.subjects[key], "id": _number(key)}
    return {"kind": ALL}


def _number(key: str) -> int:
    return int(key.partition(":")[2])


def _projects_of(key: str, scopes: Scopes) -> list[int] | None:
    """Return the projects that count; None: all of them, including deleted ones."""
    if key in scopes.projects:
        return [scopes.projects[key].pk]
    if key in scopes.subjects:
        rows = ProjectKeyword.objects.values_list("project_id", "keyword")
        return sorted({project_id for project_id, id_ in rows if _number(key) in kin([id_])})
    return None


class _Sums(NamedTuple):
    """Amounts as in the ledger."""

    estimated: int
    granted: int
    cpu_time: int
    gpu_time: int
    tasks: int
    computers: int


def _sums(user: User, first: dt.date, last: dt.date, projects: list[int] | None) -> _Sums:
    ranges, months = split(first, last, closed_until())
    params: dict[str, Any] = {"user": user.pk, "projects": projects, "months": months, **sql.range_params(ranges)}
    with connection.cursor() as cursor:
        cursor.execute(sql.sums(len(ranges)), params)
        row = cursor.fetchone()
    assert row is not None  # an aggregate always has a row
    return _Sums(*(int(amount) for amount in row))


def _facts(sums: _Sums, shows: Collection[str]) -> Statement:
    """Return the facts, without anything that should not be shown."""
    facts: Statement = {}
    if "credit" in shows:
        facts["estimated_credits"] = _within(sums.estimated // MICRO)
        if sums.granted >= MICRO:
            facts["granted_credits"] = _within(sums.granted // MICRO)
    if "run_time" in shows:
        facts["cpu_hours"], facts["gpu_hours"] = _within(sums.cpu_time // _HOUR), _within(sums.gpu_time // _HOUR)
    if "tasks" in shows:
        facts["tasks"] = _within(sums.tasks)
    if "computers" in shows:
        facts["computers"] = sums.computers
    return facts


def _within(number: int) -> int:
    """Cap a number at what a statement can contain; only a fraudulent project grants more."""
    return min(number, MAX_NUMBER)
