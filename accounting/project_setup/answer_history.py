"""The history of a project's answers: changes since it was asked before, stored as rows, in words, latest only."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.conf import settings
from django.utils import translation

from accounting.models import Project, ProjectChange
from accounting.project_setup.changes import changes

MAX_ROWS: Final = 200
"""The most rows of a project; a project that changes its answer daily fills them in weeks."""
PAGE_ROWS: Final = 50
_CHARS: Final = 500
_CHARS_BEFORE: Final = 50
"""Characters kept of the common start of two texts, before they differ."""


def add(project: Project, at: dt.datetime, lines: Iterable[tuple[str, str, str]]) -> None:
    """Store (label, before, now), and drop the oldest. Inside a transaction that has the project locked."""
    rows = []
    for label, *texts in lines:
        before, after = _cut(*texts)
        rows.append(ProjectChange(project=project, at=at, label=label, before=before, now=after))
    if not rows:
        return
    ProjectChange.objects.bulk_create(rows)
    old = ProjectChange.objects.filter(project=project).values_list("pk", flat=True)[MAX_ROWS:]
    ProjectChange.objects.filter(pk__in=list(old)).delete()


def _cut(before: str, now: str) -> tuple[str, str]:
    """Shorten both for storage. Of long texts, such as lists of platforms, keep the part where they begin to differ."""
    pairs = enumerate(zip(before, now, strict=False))
    same = next((position for position, (one, other) in pairs if one != other), min(len(before), len(now)))
    start = same - _CHARS_BEFORE
    if start <= 0 or max(len(before), len(now)) <= _CHARS:
        return before[:_CHARS], now[:_CHARS]
    return f"…{before[start:]}"[:_CHARS], f"…{now[start:]}"[:_CHARS]


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the differences between two stored answers."""
    # Stored for all operators, whoever asked the project.
    with translation.override(settings.LANGUAGE_CODE):
        return [(change.label, change.before, change.now) for change in changes(dict(before), dict(now))]


def read(project: Project) -> list[ProjectChange]:
    """Read the latest changes, newest first."""
    return list(ProjectChange.objects.filter(project=project)[:PAGE_ROWS])
