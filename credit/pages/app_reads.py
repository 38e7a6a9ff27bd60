"""Reads for the pages of apps: the list, and one app with its versions' statistics."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection
from django.db.models import Max, Q

from credit.models import PROCESSOR_TYPES, App, AppVersion, ProcessorType
from credit.pages import sql
from credit.pages.task_reads import recent_credit
from portal.extras import site_apps

RECENT_WORKUNITS: Final = 5000
"""How many workunits the figures of recent jobs cover, to bound the cost of a page."""


@dataclass(frozen=True, slots=True)
class RecentOutcomes:
    """The outcomes of a version's newest jobs."""

    ntasks: int
    credit_per_task: float
    # NULL if no run time is known
    credit_per_hour: float | None
    approximate_fraction: float


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version with its statistics; ``version`` None: the volunteers' own programs of a processor type."""

    version: AppVersion | None
    processor_type: str
    recent: RecentOutcomes | None
    # Recent average credit per day, as of now
    recent_credit: float = 0.0
    is_tested: bool = False

    @property
    def is_factor_set(self) -> bool:
        """Whether the factor in force is the one that was set from outside."""
        return self.version is not None and self.version.pfc_scale == self.version.cross_project_scale is not None

    @property
    def type_label(self) -> str:
        return str(PROCESSOR_TYPES[ProcessorType(self.processor_type)])


def read_apps() -> list[dict[str, Any]]:
    """List all apps, those in use first, with the date of the newest released version. Two statements.

    Finished apps are included because tasks link to them.
    """
    is_released = ~Q(versions__pk__in=_tested())
    apps = App.objects.annotate(released_at=Max("versions__created_at", filter=is_released))
    apps = apps.order_by("is_deprecated", "user_friendly_name", "pk")
    return [{"app": app, "released_at": app.released_at} for app in apps]


def read_app_page(name: str, now: dt.datetime) -> dict[str, Any] | None:
    """Return the data of an app's page; None if there is no app of that name. Four statements."""
    # PostgreSQL text cannot contain NUL.
    app = App.objects.filter(name=name).first() if "\0" not in name else None
    if app is None:
        return None
    recent, tested = _recent(app), _tested()
    versions = list(app.versions.select_related("platform", "app"))
    rows = [
        VersionRow(
            version,
            version.processor_type,
            recent.pop((version.pk, version.processor_type), None),
            recent_credit(version, now),
            version.pk in tested,
        )
        for version in versions
    ]
    rows.sort(key=lambda row: row.version is not None and row.version.is_deprecated)
    own = [
        VersionRow(None, type_, figures) for (version, type_), figures in sorted(recent.items(), key=str) if not version
    ]
    has_tested = any(row.is_tested for row in rows)
    return {"app": app, "versions": rows + own, "recent_workunits": RECENT_WORKUNITS, "has_tested": has_tested}


def _tested() -> set[int]:
    return {id_ for app in site_apps() for id_ in app.tested_versions()}


def _recent(app: App) -> dict[tuple[int | None, str], RecentOutcomes]:
    with connection.cursor() as cursor:
        cursor.execute(sql.RECENT_JOBS, [app.pk, RECENT_WORKUNITS])
        return {
            (version, type_): RecentOutcomes(
                ntasks=ntasks,
                credit_per_task=credit / ntasks,
                credit_per_hour=credit / (float(elapsed_secs) / 3600) if elapsed_secs else None,
                approximate_fraction=approximate / ntasks,
            )
            for version, type_, ntasks, credit, elapsed_secs, approximate in cursor.fetchall()
        }
