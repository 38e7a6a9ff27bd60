"""The feeder updates the scales of an app's versions and its lowest average every ten minutes, one run at a time.

Credit document, "Cross-version normalization" and "Feeder changes". Changes since the last run are stored in snapshots,
for charts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from django.conf import settings
from django.db import connection, transaction

from credit.engine.facts import VersionFacts
from credit.engine.normalisation import renew_scales
from credit.models import App, AppSnapshot, AppVersion, AppVersionSnapshot, VersionAverage
from credit.statistics import pass_log
from credit.statistics.facts import app_facts, version_facts
from credit.statistics.host_records import use_medians

log = structlog.get_logger(__name__)

# "cf" as a number, for an advisory lock
_LOCK: Final = 0x6366
_MOVED: Final = ("pfc_scale", "is_counted", "is_scale_received")


@dataclass(slots=True)
class FeedReport:
    """The result of a run. ``is_skipped``: another run was active."""

    napps: int = 0
    nscales: int = 0
    nsnapshots: int = 0
    is_skipped: bool = False


def feed(now: dt.datetime, app: App | None = None) -> FeedReport:
    """Update the scales of all apps, or of this one, each in a separate transaction."""
    report = FeedReport()
    for id_ in [app.pk] if app else App.objects.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            if not _is_alone():
                report.is_skipped = True
                return report
            _feed_app(id_, now, report)
    return report


def _is_alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        return bool(cursor.fetchone()[0])


def _feed_app(app_id: int, now: dt.datetime, report: FeedReport) -> None:
    """Update one app. Versions are locked in the validators' order, and the app after them."""
    versions = list(AppVersion.objects.filter(app=app_id).order_by("pk").select_for_update(no_key=True))
    app = App.objects.select_for_update(no_key=True).get(pk=app_id)
    app_, facts = app_facts(app), [version_facts(version) for version in versions]
    rows, least = pass_log.version_rows(facts), app.min_avg_pfc
    if app.version_average == VersionAverage.MEDIAN:
        use_medians(facts, app_.rules)
    for impossible in renew_scales(app_, facts):
        log.error("feeder_impossible_scale", version=impossible)
    nscales = _store_scales(versions, facts)
    if app_.min_avg_pfc != least:
        app.min_avg_pfc = app_.min_avg_pfc
        # Not save(), which checks whether a setting was changed
        App.objects.filter(pk=app.pk).update(min_avg_pfc=app.min_avg_pfc)
    report.napps += 1
    report.nscales += nscales
    report.nsnapshots += _take_snapshots(app, versions, now)
    _keep_for_previews(app_id, now, least, rows, bool(nscales) or least != app.min_avg_pfc)


def _keep_for_previews(app_id: int, now: dt.datetime, least: float | None, versions: bytes, has_changed: bool) -> None:
    try:
        with transaction.atomic():
            pass_log.log_feeder(app_id, now, least, versions, has_changed)
            pass_log.prune(app_id, settings.PREVIEW_WORKUNITS)
    except Exception:
        # Scales do not depend on the log for previews, whatever is wrong with it.
        if connection.needs_rollback:
            raise
        log.exception("feeder_run_not_kept", app=app_id)


def _store_scales(versions: Sequence[AppVersion], facts: Sequence[VersionFacts]) -> int:
    """Store the scales; return how many changed."""
    moved = []
    nscales = 0
    for version, renewed in zip(versions, facts, strict=True):
        nscales += renewed.pfc_scale != version.pfc_scale
        if any(getattr(renewed, name) != getattr(version, name) for name in _MOVED):
            for name in _MOVED:
                setattr(version, name, getattr(renewed, name))
            moved.append(version)
    AppVersion.objects.bulk_update(moved, _MOVED)
    return nscales


def _take_snapshots(app: App, versions: Sequence[AppVersion], now: dt.datetime) -> int:
    """Add a row for each version, and for the app, if its numbers differ from its latest row."""
    latest = {
        snapshot.app_version_id: snapshot
        for snapshot in AppVersionSnapshot.objects.filter(app_version__in=versions)
        .order_by("app_version_id", "-taken_at")
        .distinct("app_version_id")
    }
    rows = [
        AppVersionSnapshot(
            app_version=version,
            taken_at=now,
            pfc_n=version.pfc_n,
            pfc_avg=version.pfc_avg,
            pfc_scale=version.pfc_scale,
            expavg_credit=version.expavg_credit,
        )
        for version in versions
        if _numbers(version) != (_numbers(latest[version.pk]) if version.pk in latest else _NO_NUMBERS)
    ]
    AppVersionSnapshot.objects.bulk_create(rows, ignore_conflicts=True)
    last = app.snapshots.order_by("-taken_at").first()
    if app.min_avg_pfc != (last.min_avg_pfc if last else None):
        AppSnapshot.objects.bulk_create(
            [AppSnapshot(app=app, taken_at=now, min_avg_pfc=app.min_avg_pfc)], ignore_conflicts=True
        )
    return len(rows)


def _numbers(row: AppVersion | AppVersionSnapshot) -> tuple[int, float | None, float | None, float]:
    return row.pfc_n, row.pfc_avg, row.pfc_scale, row.expavg_credit


_NO_NUMBERS: Final = (0, None, None, 0.0)
