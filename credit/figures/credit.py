"""The credit panel: what is granted, how evenly, by which claims, and the statistics behind it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Final

from django.db import connection
from django.utils.timezone import now as time_now

from credit.figures import sql
from credit.figures.names import all_versions, app_names, version_names
from credit.models import App
from credit.statistics.markers import markers
from portal.dashboard import registry
from portal.dashboard.reads import bucket_secs
from portal.dashboard.registry import Combine, Figure, Marker, Panel, Sample, Source, Unit
from portal.dashboard.rules import Points, above

KEY: Final = "credit"
_VERSIONS: Final = "admin:credit_appversion_changelist"
_APPS: Final = "admin:credit_app_changelist"
_LEAST_CLAIMS: Final = 20
_RECENT: Final = "Of the last 20,000 results at most that were reported within a day."


def _marks(since: dt.datetime, until: dt.datetime) -> list[Marker]:
    return [Marker(*event) for event in markers(None, since, until)]


def _version_course(column: int) -> Callable[[dt.datetime, dt.datetime], dict[str, Points]]:
    """From the snapshots of versions: column 0 is the factor, 1 the average."""

    def history(since: dt.datetime, until: dt.datetime) -> dict[str, Points]:
        names = version_names(all_versions(), app_names())
        return _course(sql.VERSION_COURSE, names, column, since, until)

    return history


def _app_course(since: dt.datetime, until: dt.datetime) -> dict[str, Points]:
    return _course(sql.APP_COURSE, app_names(), 0, since, until)


def _course(
    statement: str, names: dict[int, str], column: int, since: dt.datetime, until: dt.datetime
) -> dict[str, Points]:
    """Snapshots are taken when something changed, so each line goes on to the end."""
    series: dict[str, list[tuple[float, float]]] = {}
    end = min(until, time_now()).timestamp()
    with connection.cursor() as cursor:
        cursor.execute(statement, {"since": since, "until": until, "bucket_secs": bucket_secs(since, until)})
        for id_, at, *values in cursor.fetchall():
            if values[column] is not None and id_ in names:
                series.setdefault(names[id_], []).append((at, values[column]))
    for points in series.values():
        if points[-1][0] < end:
            points.append((end, points[-1][1]))
    return dict(series)


FIGURES: Final = (
    Figure(
        "credit.granted",
        "Credit granted",
        Unit.CREDITS,
        per_secs=3600,
        per="an hour",
        series="version",
        link=_VERSIONS,
        link_text="Versions",
        markers=_marks,
    ),
    Figure(
        "credit.grants",
        "Results granted credit",
        per_secs=3600,
        per="an hour",
        series="version",
        link=_VERSIONS,
        link_text="Versions",
        markers=_marks,
    ),
    Figure(
        "credit.median",
        "Credit for what a job is estimated at",
        Unit.FACTOR,
        combine=Combine.MEAN,
        series="version",
        link=_VERSIONS,
        link_text="Versions",
        about=f"The median of credit divided by what the estimated FLOPs are worth. {_RECENT}",
        markers=_marks,
    ),
    Figure(
        "credit.spread",
        "Spread of credit for equal jobs",
        Unit.PERCENT,
        combine=Combine.MAX,
        series="version",
        link=_VERSIONS,
        link_text="Versions",
        about="How far the middle 80 % of results are apart, in percent of the median; jobs count by their estimate. "
        f"{_RECENT}",
        markers=_marks,
    ),
    Figure(
        "credit.approximate",
        "Approximate claims",
        Unit.PERCENT,
        combine=Combine.MAX,
        series="app",
        about=f"Claims that do not count when there is a better one. {_RECENT}",
        markers=_marks,
    ),
    Figure(
        "credit.scale",
        "Factor of versions (pfc_scale)",
        Unit.FACTOR,
        combine=Combine.MEAN,
        series="version",
        link=_VERSIONS,
        link_text="Versions",
        history=_version_course(0),
        markers=_marks,
    ),
    Figure(
        "credit.average",
        "Average of versions (pfc_avg)",
        Unit.FACTOR,
        combine=Combine.MEAN,
        series="version",
        link=_VERSIONS,
        link_text="Versions",
        history=_version_course(1),
        markers=_marks,
    ),
    Figure(
        "credit.least_average",
        "Least average of apps (min_avg_pfc)",
        Unit.FACTOR,
        combine=Combine.MEAN,
        series="app",
        link=_APPS,
        link_text="Apps",
        history=_app_course,
        markers=_marks,
    ),
    Figure(
        "credit.suspicious",
        "Suspicious claims",
        Unit.PERCENT,
        combine=Combine.MAX,
        series="app",
        about="Claims above the job's bound, of impossible speeds or run times, or of a run time longer than the job "
        f"was out. They are priced by the app's average. {_RECENT}",
        link="admin:credit_result_changelist",
        link_text="Results",
        trouble=above(5, "{labels}: more than 5 % of the claims are suspicious."),
        markers=_marks,
    ),
    Figure(
        "credit.probation",
        "Computers on probation",
        series="app",
        about="By app; it matters where host_scale_check is on.",
        link="admin:credit_hostappversion_changelist?scale_probation__exact=1",
    ),
)


def take(now: dt.datetime) -> Iterator[Sample]:
    apps = app_names()
    versions = all_versions()
    names = version_names(versions, apps)
    for pk, name in names.items():
        version = versions[pk]
        yield Sample("credit.granted", version.total_credit, name)
        yield Sample("credit.grants", version.ngranted, name)
        if version.pfc_scale is not None and not version.is_deprecated:
            yield Sample("credit.scale", version.pfc_scale, name)
        if version.pfc_avg is not None and not version.is_deprecated:
            yield Sample("credit.average", version.pfc_avg, name)
    for app_id, least in App.objects.values_list("pk", "min_avg_pfc"):
        if least is not None and app_id in apps:
            yield Sample("credit.least_average", least, apps[app_id])
    with connection.cursor() as cursor:
        cursor.execute(sql.SPREAD, {"now": now})
        for version_id, (low, median, high) in cursor.fetchall():
            yield Sample("credit.median", median, names[version_id])
            if median > 0:
                yield Sample("credit.spread", 100 * (high - low) / median, names[version_id])
        cursor.execute(sql.CLAIMS, {"now": now})
        for app_id, approximate, suspicious, count in cursor.fetchall():
            yield Sample("credit.approximate", float(approximate), apps[app_id])
            # One claim of fewer would be more than the share that needs attention.
            if count >= _LEAST_CLAIMS:
                yield Sample("credit.suspicious", 100 * suspicious / count, apps[app_id])
        cursor.execute(sql.ON_PROBATION)
        found = dict(cursor.fetchall())
    for app_id, name in apps.items():
        yield Sample("credit.probation", found.get(app_id, 0), name)


def register() -> None:
    """Called once, when the app is ready, if the site has a project."""
    registry.add_panel(Panel(KEY, "Credit", 3))
    registry.add_source(Source(KEY, FIGURES, take))
