"""The credit panel: what is granted, how evenly, by which claims, and the statistics behind it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Final

from django.db import connection
from django.utils.timezone import now as time_now
from django.utils.translation import gettext_lazy as _

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
        _("Credit granted"),
        Unit.CREDITS,
        per_secs=3600,
        per=_("per hour"),
        series=_("version"),
        link=_VERSIONS,
        link_text=_("Versions"),
        markers=_marks,
    ),
    Figure(
        "credit.grants",
        _("Results granted credit"),
        per_secs=3600,
        per=_("per hour"),
        series=_("version"),
        link=_VERSIONS,
        link_text=_("Versions"),
        markers=_marks,
    ),
    Figure(
        "credit.median",
        _("Credit relative to estimates"),
        Unit.FACTOR,
        combine=Combine.MEAN,
        series=_("version"),
        link=_VERSIONS,
        link_text=_("Versions"),
        about=_(
            "The median of credit divided by the credit for the estimated FLOPs. Of up to 20\u202f000 results reported "
            "within the last day."
        ),
        markers=_marks,
    ),
    Figure(
        "credit.spread",
        _("Spread of credit for equal jobs"),
        Unit.PERCENT,
        combine=Combine.MAX,
        series=_("version"),
        link=_VERSIONS,
        link_text=_("Versions"),
        about=_(
            "The range of the middle 80 % of results, in percent of the median; jobs are compared by their estimates. "
            "Of up to 20\u202f000 results reported within the last day."
        ),
        markers=_marks,
    ),
    Figure(
        "credit.approximate",
        _("Approximate claims"),
        Unit.PERCENT,
        combine=Combine.MAX,
        series=_("app"),
        about=_(
            "Claims that do not count if there is a better one. Of up to 20\u202f000 results reported within the "
            "last day."
        ),
        markers=_marks,
    ),
    Figure(
        "credit.scale",
        _("Factor of versions (pfc_scale)"),
        Unit.FACTOR,
        combine=Combine.MEAN,
        series=_("version"),
        link=_VERSIONS,
        link_text=_("Versions"),
        history=_version_course(0),
        markers=_marks,
    ),
    Figure(
        "credit.average",
        _("Average of versions (pfc_avg)"),
        Unit.FACTOR,
        combine=Combine.MEAN,
        series=_("version"),
        link=_VERSIONS,
        link_text=_("Versions"),
        history=_version_course(1),
        markers=_marks,
    ),
    Figure(
        "credit.least_average",
        _("Lowest average of apps (min_avg_pfc)"),
        Unit.FACTOR,
        combine=Combine.MEAN,
        series=_("app"),
        link=_APPS,
        link_text=_("Apps"),
        history=_app_course,
        markers=_marks,
    ),
    Figure(
        "credit.suspicious",
        _("Suspicious claims"),
        Unit.PERCENT,
        combine=Combine.MAX,
        series=_("app"),
        about=_(
            "Claims above the job’s bound, with impossible speeds or run times, or with a run time longer than the "
            "time between sending and report. They are based on the app’s average instead. Of up to 20\u202f000 "
            "results reported within the last day."
        ),
        link="admin:credit_result_changelist",
        link_text=_("Results"),
        trouble=above(5, _("{labels}: more than 5 % of the claims are suspicious.")),
        markers=_marks,
    ),
    Figure(
        "credit.probation",
        _("Computers on probation"),
        series=_("app"),
        about=_("By app. Matters only where host_scale_check is on."),
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
    registry.add_panel(Panel(KEY, _("Credit"), 3))
    registry.add_source(Source(KEY, FIGURES, take))
