"""What a certificate can be about, and what it says: from sums of months, and from days where they begin or end.

Everything is rounded down to whole credits and hours, so a certificate never says more than there was.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import connection

from accounting.badges.reads import titles_until
from accounting.certificates import sql
from accounting.engine.amounts import MICRO
from accounting.history.sums import read_first_day
from accounting.ledger.months import closed_until, split
from accounting.models import Project, ProjectKeyword, UserProject
from accounting.wire.statements import MAX_NUMBER, Statement
from portal.models import User
from portal.wire.keywords import KEYWORDS, SCIENCE, kin

FORMAT: Final = "Cobblestone certificate 1"
ALL: Final = "all"
_HOUR: Final = 3600 * MICRO


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a volunteer wants certified. ``about``: "all", "project:3" or "subject:9"; ``shows``: names in `SHOWN`."""

    first: dt.date
    last: dt.date
    about: str
    shows: Collection[str]
    name: str = ""


SHOWN: Final = ("credit", "run_time", "tasks", "computers", "since", "badges")
"""What a certificate can say."""


@dataclass(frozen=True, slots=True)
class Abouts:
    """What a volunteer's certificates can be about: projects that they worked for, and their subjects; by key."""

    projects: dict[str, Project]
    subjects: dict[str, str]

    def __contains__(self, key: str) -> bool:
        return key == ALL or key in self.projects or key in self.subjects


def read_abouts(user: User) -> Abouts:
    """Two statements."""
    worked_for = UserProject.objects.filter(user=user, total_ec__gt=0).values("project")
    projects = {f"project:{each.pk}": each for each in Project.objects.filter(pk__in=worked_for).order_by("name")}
    ids = kin(ProjectKeyword.objects.filter(project__in=projects.values()).values_list("keyword", flat=True))
    named = sorted((KEYWORDS[id_].name, id_) for id_ in ids if id_ in KEYWORDS and KEYWORDS[id_].category == SCIENCE)
    return Abouts(projects, {f"subject:{id_}": name for name, id_ in named})


def draft(user: User, wanted: Wanted, abouts: Abouts, today: dt.date) -> Statement:
    """The statement, but for its code: at most nine statements of SQL, however long the range is."""
    statement: Statement = {
        "format": FORMAT,
        "site": settings.SITE_URL,
        "made_on": today.isoformat(),
        "first": wanted.first.isoformat(),
        "last": wanted.last.isoformat(),
        "about": _about(wanted.about, abouts),
        "facts": _facts(user, wanted, abouts, today),
    }
    return statement | ({"name": wanted.name} if wanted.name else {})


def _about(key: str, abouts: Abouts) -> Statement:
    if key in abouts.projects:
        project = abouts.projects[key]
        return {"kind": "project", "name": project.name, "url": project.master_url}
    if key in abouts.subjects:
        return {"kind": "subject", "name": abouts.subjects[key], "id": _number(key)}
    return {"kind": ALL}


def _number(key: str) -> int:
    return int(key.partition(":")[2])


def _projects_of(key: str, abouts: Abouts) -> list[int] | None:
    """The projects that count; None: all of them, also those that are gone from the list."""
    if key in abouts.projects:
        return [abouts.projects[key].pk]
    if key in abouts.subjects:
        rows = ProjectKeyword.objects.values_list("project_id", "keyword")
        return sorted({project_id for project_id, id_ in rows if _number(key) in kin([id_])})
    return None


def _facts(user: User, wanted: Wanted, abouts: Abouts, today: dt.date) -> Statement:
    """Nothing that is not to be shown is in it."""
    found: Statement = {}
    if {"credit", "run_time", "tasks", "computers"} & set(wanted.shows):
        found = _sums(user, wanted, _projects_of(wanted.about, abouts))
    if "since" in wanted.shows and (since := read_first_day(user, today)) is not None:
        found["since"] = since.isoformat()
    if "badges" in wanted.shows:
        found["badges"] = titles_until(user, wanted.last)
    return found


def _sums(user: User, wanted: Wanted, projects: list[int] | None) -> Statement:
    ranges, months = split(wanted.first, wanted.last, closed_until())
    params: dict[str, Any] = {"user": user.pk, "projects": projects, "months": months, **sql.range_params(ranges)}
    with connection.cursor() as cursor:
        cursor.execute(sql.sums(len(ranges)), params)
        row = cursor.fetchone()
    assert row is not None  # an aggregate always has a row
    estimated, granted, cpu_time, gpu_time, tasks, computers = (int(each) for each in row)
    found: Statement = {}
    if "credit" in wanted.shows:
        found["estimated_credits"] = _within(estimated // MICRO)
        if granted >= MICRO:
            found["granted_credits"] = _within(granted // MICRO)
    if "run_time" in wanted.shows:
        found["cpu_hours"], found["gpu_hours"] = _within(cpu_time // _HOUR), _within(gpu_time // _HOUR)
    if "tasks" in wanted.shows:
        found["tasks"] = _within(tasks)
    if "computers" in wanted.shows:
        found["computers"] = computers
    return found


def _within(number: int) -> int:
    """A number that a statement can have; only a project that lies grants more."""
    return min(number, MAX_NUMBER)
