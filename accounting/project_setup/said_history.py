"""What changed at a project since it was asked before: kept as rows, in words, the newest of each project."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.conf import settings
from django.utils import translation

from accounting.models import Project, ProjectChange
from accounting.project_setup.changes import changes

KEPT: Final = 200
"""Rows of a project; a project that says something else each day fills them in weeks."""
SHOWN: Final = 50
_CHARS: Final = 500
_CHARS_BEFORE: Final = 50
"""That are kept of what is the same in both before they differ."""


def note(project: Project, at: dt.datetime, lines: Iterable[tuple[str, str, str]]) -> None:
    """Keep (label, before, now), and drop the oldest. Inside a transaction that has the project locked."""
    rows = []
    for label, *texts in lines:
        before, after = _cut(*texts)
        rows.append(ProjectChange(project=project, at=at, label=label, before=before, now=after))
    if not rows:
        return
    ProjectChange.objects.bulk_create(rows)
    old = ProjectChange.objects.filter(project=project).values_list("pk", flat=True)[KEPT:]
    ProjectChange.objects.filter(pk__in=list(old)).delete()


def _cut(before: str, now: str) -> tuple[str, str]:
    """Both as they are kept. Of what is too long, as lists of platforms are, the part where they begin to differ."""
    pairs = enumerate(zip(before, now, strict=False))
    same = next((place for place, (one, other) in pairs if one != other), min(len(before), len(now)))
    start = same - _CHARS_BEFORE
    if start <= 0 or max(len(before), len(now)) <= _CHARS:
        return before[:_CHARS], now[:_CHARS]
    return f"…{before[start:]}"[:_CHARS], f"…{now[start:]}"[:_CHARS]


def between(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What two stored answers say differently."""
    # Kept for all operators, whoever asked the project.
    with translation.override(settings.LANGUAGE_CODE):
        return [(change.label, change.before, change.now) for change in changes(dict(before), dict(now))]


def read(project: Project) -> list[ProjectChange]:
    """The newest, newest first."""
    return list(ProjectChange.objects.filter(project=project)[:SHOWN])
