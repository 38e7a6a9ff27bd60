"""Figures for the public front page: sums of the whole site and its projects; nothing about one person or computer.

Sums over fewer than `LEAST_PEOPLE` would reveal individuals, so there are none then.

Cached for ten minutes, so that visitors cost no statements.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.core.cache import cache
from django.db.models import Exists, F, OuterRef, Sum
from django.utils import timezone
from django.utils.translation import gettext_noop

from accounting.models import HostProject, Project, ProjectDay
from portal.dashboard.status import current
from portal.models import User
from portal.templatetags.drawings import round_up
from portal.wire.keywords import KEYWORDS, SCIENCE

CACHED_SECS: Final = 600
DAYS_SHOWN: Final = 60
LEAST_PEOPLE: Final = 5
OTHER: Final = gettext_noop("Other subjects")
_KEY: Final = "accounting:public"
_HOUR_MICRO_SECS: Final = 3_600_000_000


def read_public() -> dict[str, Any]:
    """Read the sums and the projects by subject; five statements in ten minutes, and those of the public status."""
    figures: dict[str, Any] | None = cache.get(_KEY)
    if figures is None:
        figures = _read_sums(timezone.now().date()) | {"subjects": read_subjects()}
        cache.set(_KEY, figures, timeout=CACHED_SECS)
    days = [(dt.date.fromisoformat(day), hours) for day, hours in figures["days"]]
    return figures | {"days": days, "computers": current()["active"]["week"]}


def _read_sums(today: dt.date) -> dict[str, Any]:
    at_projects = HostProject.objects.filter(host__owner=OuterRef("pk"))
    if User.objects.filter(Exists(at_projects)).order_by()[:LEAST_PEOPLE].count() < LEAST_PEOPLE:
        return {"hours": 0, "results": 0, "days": [], "most_hours": 0}
    run_time = Sum(F("cpu_time") + F("gpu_time"))
    # Work of an account manager that moved here is in the days of its projects, too.
    days_of_projects = ProjectDay.objects.exclude(project__is_before_move=True)
    total = days_of_projects.aggregate(run_time=run_time, results=Sum("njobs_success"))
    first = today - dt.timedelta(days=DAYS_SHOWN - 1)
    by_day = dict(
        days_of_projects.filter(day__gte=first, day__lte=today).values_list("day").annotate(run_time=run_time)
    )
    days = [first + dt.timedelta(days=number) for number in range(DAYS_SHOWN)]
    hours = [by_day.get(day, 0) / _HOUR_MICRO_SECS for day in days]
    return {
        "hours": round((total["run_time"] or 0) / _HOUR_MICRO_SECS),
        "results": total["results"] or 0,
        "days": [[day.isoformat(), round(value, 1)] for day, value in zip(days, hours, strict=True)],
        "most_hours": round_up(max(hours)),
    }


def read_subjects() -> list[dict[str, Any]]:
    """Read the projects that take computers, each under its sciences. Two statements."""
    subjects: dict[str, list[dict[str, Any]]] = {}
    for project in Project.objects.filter(is_active=True).prefetch_related("keywords"):
        description = {
            "name": project.name,
            "summary": project.summary,
            "description": project.description,
            "web_url": project.web_url,
            "colour": project.data_colour,
        }
        roots = {KEYWORDS[row.keyword].kin[-1] for row in project.keywords.all() if row.keyword in KEYWORDS}
        names = sorted(KEYWORDS[root].name for root in roots if KEYWORDS[root].category == SCIENCE)
        for name in names or [OTHER]:
            subjects.setdefault(name, []).append(description)
    ordered = sorted(subjects, key=lambda name: (name == OTHER, name))
    return [{"name": name, "projects": subjects[name]} for name in ordered]
