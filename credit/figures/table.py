"""The project's figures: jobs and what they wait for, credit and its statistics, the public status."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Final

from django.db import connection
from django.urls import reverse
from django.utils.timezone import now as time_now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState
from credit.figures import outcomes, sql
from credit.figures.names import app_names, by_short_name, by_version
from credit.models import App
from credit.statistics.markers import markers
from portal.dashboard.reads import bucket_secs
from portal.dashboard.registry import (
    Daemon,
    Figure,
    FigureQuery,
    History,
    Marker,
    Metric,
    Part,
    Rows,
    Sample,
    Table,
    Unit,
)
from portal.dashboard.rules import Points, above, grows
from portal.languages.messages import Message

STUCK_SECS: Final = 3600
"""Work that is ready is done within seconds: if it has waited for an hour, it is stuck."""
MAX_SERIES: Final = 8
"""The number of kinds of failures that are distinguished: programs may end with any number, and samples are kept for
good.
"""
_LEAST_ENDED: Final = 10
"""Shares of fewer results say nothing."""

_RESULTS: Final = "admin:credit_result_changelist"
_WORKUNITS: Final = "admin:credit_workunit_changelist"
_UNSENT: Final = f"{_RESULTS}?server_state__exact={ServerState.UNSENT:d}"
_IN_PROGRESS: Final = f"{_RESULTS}?server_state__exact={ServerState.IN_PROGRESS:d}"
_FAILED: Final = f"{_RESULTS}?outcome__exact={Outcome.CLIENT_ERROR:d}"
_TO_VALIDATE: Final = f"{_WORKUNITS}?need_validate__exact=1"
_TO_ASSIMILATE: Final = f"{_WORKUNITS}?assimilate_state__exact={AssimilateState.READY:d}"
_TO_DELETE: Final = f"{_WORKUNITS}?file_delete_state__exact={FileDeleteState.READY:d}"
_EXPORTS: Final = "admin:credit_statisticsexport_changelist"
_NO_QUOTA: Final = gettext_noop("not set")


def _course(statement: str, by_app: bool, column: int = 0) -> History:
    """Return a history from snapshots. They are taken on changes only, so each line is continued to the end."""

    def history(since: dt.datetime, until: dt.datetime) -> dict[str, Points]:
        names = app_names() if by_app else by_version()
        series: dict[str, list[tuple[float, float]]] = {}
        with connection.cursor() as cursor:
            cursor.execute(statement, {"since": since, "until": until, "bucket_secs": bucket_secs(since, until)})
            for id_, at, *values in cursor.fetchall():
                if values[column] is not None and id_ in names:
                    series.setdefault(names[id_], []).append((at, values[column]))
        end = min(until, time_now()).timestamp()
        return {
            name: [*points, (end, points[-1][1])] if points[-1][0] < end else points for name, points in series.items()
        }

    return history


def _marks(since: dt.datetime, until: dt.datetime) -> list[Marker]:
    return [Marker(*event) for event in markers(None, since, until)]


_by_app = partial(Figure, series=_("app"))
_hourly = partial(Figure, per=_("per hour"), link=_FAILED)
_transitioner = partial(Figure, link="admin:scheduler_retryentry_changelist", link_text=_("Retry queue"))
JOBS: Final = (
    _by_app("jobs.unsent", _("Unsent"), link=_UNSENT, about=_("Results waiting to be sent.")),
    _by_app(
        "jobs.unsent_oldest",
        _("Oldest unsent"),
        Unit.SECS,
        link=_UNSENT,
        trouble=above(
            14 * 86_400,
            _(
                "Jobs have been waiting to be sent for two weeks: {labels}. Is there a version that volunteers’ "
                "computers can run, and for a further copy of a job a volunteer who has none yet?"
            ),
        ),
    ),
    _by_app("jobs.in_progress", _("In progress"), link=_IN_PROGRESS),
    _by_app(
        "jobs.late",
        _("Late, not timed out yet"),
        link=_IN_PROGRESS,
        about=_("Results whose deadline was more than ten minutes ago. The transitioner should have timed them out."),
        trouble=above(
            0, _("Late jobs are not being timed out: {labels}. Check the task “transition” and the retry queue.")
        ),
    ),
    _transitioner(
        "jobs.to_transition",
        _("Waiting for the transitioner"),
        trouble=grows(_("More and more workunits are waiting for the transitioner.")),
    ),
    _transitioner(
        "jobs.to_transition_oldest",
        _("Oldest waiting for the transitioner"),
        Unit.SECS,
        trouble=above(STUCK_SECS, _("A workunit has been waiting for the transitioner for more than an hour.")),
    ),
    _by_app(
        "jobs.to_validate",
        _("Waiting for validation"),
        link=_TO_VALIDATE,
        trouble=grows(_("More and more workunits are waiting for validation.")),
    ),
    _by_app(
        "jobs.to_validate_oldest",
        _("Oldest waiting for validation"),
        Unit.SECS,
        link=_TO_VALIDATE,
        about=_("Since the last result was reported; for the first 200 workunits of each app."),
        trouble=above(
            STUCK_SECS,
            _(
                "{labels}: a workunit has been waiting for validation for more than an hour. Open one to see why its "
                "outputs could not be compared."
            ),
        ),
    ),
    _by_app(
        "jobs.not_comparable",
        _("Could not be compared"),
        link=f"{_TO_VALIDATE}&validate_fault__isempty=0",
        trouble=above(0, _("{labels}: outputs could not be compared. Each workunit says why.")),
    ),
    _by_app(
        "jobs.to_assimilate",
        _("Waiting for assimilation"),
        link=_TO_ASSIMILATE,
        trouble=grows(_("More and more workunits are waiting for assimilation.")),
    ),
    _by_app(
        "jobs.to_assimilate_oldest",
        _("Oldest waiting for assimilation"),
        Unit.SECS,
        link=_TO_ASSIMILATE,
        about=_("Since credit was granted; for the first 200 workunits of each app."),
        trouble=above(
            STUCK_SECS,
            _("{labels}: a workunit has been waiting for assimilation for more than an hour. Check the retry queue."),
        ),
    ),
    Figure(
        "jobs.to_delete",
        _("Workunits waiting for file deletion"),
        link=_TO_DELETE,
        trouble=grows(_("More and more files are waiting for deletion.")),
    ),
    Figure(
        "jobs.to_delete_oldest",
        _("Oldest waiting for file deletion"),
        Unit.SECS,
        link=_TO_DELETE,
        trouble=above(6 * 3600, _("Files have been waiting for deletion for more than six hours.")),
    ),
    _hourly(
        "jobs.ended",
        _("Results that ended"),
        series=_("outcome"),
        link=_RESULTS,
        history=outcomes.by(outcomes.outcome_name, ["outcome"]),
    ),
    _hourly(
        "jobs.failed",
        _("Results that failed"),
        series=_("error"),
        about=_("Errors, time-outs, and outputs that could not be checked."),
        history=outcomes.by(outcomes.error_name, ["outcome", "exit_status"], outcomes.FAILURES),
        label_text=outcomes.error_text,
    ),
    _hourly(
        "jobs.failed_by_app",
        _("Failed, by app"),
        series=_("app"),
        history=outcomes.by(lambda row: row.app, ["app_id"], outcomes.FAILURES),
    ),
    _hourly(
        "jobs.failed_by_version",
        _("Failed, by version"),
        series=_("version"),
        history=outcomes.by(lambda row: row.version, ["app_id", "app_version_id"], outcomes.FAILURES),
    ),
    _hourly(
        "jobs.failed_by_platform",
        _("Failed, by platform"),
        series=_("platform"),
        history=outcomes.by(lambda row: row.platform, ["app_version_id"], outcomes.FAILURES),
    ),
    _by_app(
        "jobs.failed_share",
        _("Share of results that fail"),
        Unit.PERCENT,
        link=_FAILED,
        about=_("Of the results that ended in the last full hour."),
        trouble=above(30, _("{labels}: more than 30 % of the results of the last hour failed.")),
    ),
    Figure(
        "jobs.rows",
        _("Approximate number of rows"),
        series=_("table"),
        about=_("According to PostgreSQL’s statistics."),
    ),
)

_marked = partial(Figure, series=_("app"), markers=_marks)
_by_version = partial(
    Figure, series=_("version"), markers=_marks, link="admin:credit_appversion_changelist", link_text=_("Versions")
)
_granted = partial(_by_version, per_secs=3600, per=_("per hour"))
CREDIT: Final = (
    _granted("credit.granted", _("Credit granted"), Unit.CREDITS),
    _granted("credit.grants", _("Results granted credit")),
    _by_version(
        "credit.median",
        _("Credit relative to estimates"),
        Unit.FACTOR,
        about=_(
            "The median of credit divided by the credit for the estimated FLOPs. Of up to 20\u202f000 results reported "
            "within the last day."
        ),
    ),
    _by_version(
        "credit.spread",
        _("Spread of credit for equal jobs"),
        Unit.PERCENT,
        about=_(
            "The range of the middle 80 % of results, in percent of the median; jobs are compared by their estimates. "
            "Of up to 20\u202f000 results reported within the last day."
        ),
    ),
    _marked(
        "credit.approximate",
        _("Approximate claims"),
        Unit.PERCENT,
        about=_(
            "Claims that do not count if there is a better one. Of up to 20\u202f000 results reported within the "
            "last day."
        ),
    ),
    _by_version(
        "credit.scale", _("Factor of versions (pfc_scale)"), Unit.FACTOR, history=_course(sql.VERSION_COURSE, False, 0)
    ),
    _by_version(
        "credit.average", _("Average of versions (pfc_avg)"), Unit.FACTOR, history=_course(sql.VERSION_COURSE, False, 1)
    ),
    _marked(
        "credit.least_average",
        _("Lowest average of apps (min_avg_pfc)"),
        Unit.FACTOR,
        link="admin:credit_app_changelist",
        link_text=_("Apps"),
        history=_course(sql.APP_COURSE, True),
    ),
    _marked(
        "credit.suspicious",
        _("Suspicious claims"),
        Unit.PERCENT,
        about=_(
            "Claims above the job’s bound, with impossible speeds or run times, or with a run time longer than the "
            "time between sending and report. They are based on the app’s average instead. Of up to 20\u202f000 "
            "results reported within the last day."
        ),
        link=_RESULTS,
        link_text=_("Results"),
        trouble=above(5, _("{labels}: more than 5 % of the claims are suspicious.")),
    ),
    _by_app(
        "credit.probation",
        _("Computers on probation"),
        about=_("By app. Matters only where host_scale_check is on."),
        link="admin:credit_hostappversion_changelist?scale_probation__exact=1",
    ),
    _by_app(
        "credit.pairs",
        _("Pairs that confirm each other"),
        about=_("Volunteers who confirm each other’s results more often than chance would."),
        link="admin:credit_confirmingpair_changelist",
        link_text=_("Pairs"),
    ),
    Figure(
        "export.age",
        _("Age of the statistics export"),
        Unit.SECS,
        link=_EXPORTS,
        link_text=_("Exports"),
        about=_("Other sites read it daily."),
        trouble=above(
            2 * 86_400 + 3600, _("The statistics for other sites are two days old. The list of exports says why.")
        ),
    ),
    Figure("export.users", _("Published volunteers"), link=_EXPORTS, link_text=_("Exports")),
)


def read_ended(now: dt.datetime) -> Iterator[Sample]:
    """Count results that ended in the last full hour, once those of all hours are counted."""
    outcomes.roll_up(now)
    hour = now.astimezone(dt.UTC).replace(minute=0, second=0, microsecond=0) - dt.timedelta(hours=1)
    rows = outcomes.read(hour, hour, ["app_id", "app_version_id", "outcome", "exit_status"])
    ended: dict[str, int] = dict.fromkeys(map(outcomes.outcome_text, (Outcome.SUCCESS, Outcome.CLIENT_ERROR)), 0)
    failed = [row for row in rows if row.outcome in outcomes.FAILURES]
    for row in rows:
        ended[outcomes.outcome_name(row)] = ended.get(outcomes.outcome_name(row), 0) + row.number
    yield from (Sample("jobs.ended", count, name) for name, count in ended.items())
    for figure, label in (
        ("jobs.failed", outcomes.error_name),
        ("jobs.failed_by_app", lambda row: row.app),
        ("jobs.failed_by_version", lambda row: row.version),
        ("jobs.failed_by_platform", lambda row: row.platform),
    ):
        sums: Counter[str] = Counter()
        for row in failed:
            sums[label(row)] += row.number
        by_number = sums.most_common()
        yield from (Sample(figure, count, name) for name, count in by_number[:MAX_SERIES])
        if rest := sum(count for _, count in by_number[MAX_SERIES:]):
            yield Sample(figure, rest, "other")
        if not sums:
            yield Sample(figure, 0)
    for app in sorted({row.app for row in rows}):
        of_app = sum(row.number for row in rows if row.app == app)
        if of_app >= _LEAST_ENDED:
            bad = sum(row.number for row in failed if row.app == app)
            yield Sample("jobs.failed_share", 100 * bad / of_app, app)


def failing_hosts(now: dt.datetime) -> Rows:
    """List the computers that fail most, and how much."""
    with connection.cursor() as cursor:
        cursor.execute(sql.FAILING_HOSTS)
        return [
            [
                [
                    given or domain or Message("unnamed_computer", number=str(host)).packed(),
                    f"{reverse(_RESULTS)}?host__id__exact={host}",
                ],
                app,
                f"{100 * share:.0f} %",
                f"{100 * errors:.0f} %",
                str(quota or _NO_QUOTA),
            ]
            for host, given, domain, app, share, errors, quota in cursor.fetchall()
        ]


def _apps(now: dt.datetime) -> Rows:
    """List the apps: number, names, run time (h: mean, minimum, maximum) and volunteers of the newest results of a day,
    and whether the app is withdrawn.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.RUN_TIMES, {"now": now})
        run_times = {app: [round(secs or 0, 2) for secs in times] + [users] for app, *times, users in cursor.fetchall()}
    names = app_names()
    return [
        [app.pk, app.name, names[app.pk], *run_times.get(app.pk, [0.0, 0.0, 0.0, 0]), app.is_deprecated]
        for app in App.objects.order_by("pk")
    ]


JOB_READINGS: Final = (
    FigureQuery(sql.UNSENT, by_short_name),
    FigureQuery(sql.IN_PROGRESS, by_short_name),
    FigureQuery(
        sql.TO_VALIDATE,
        by_short_name,
        metrics=(Metric("jobs.to_validate", "cobblestone_workunits_to_validate", "Workunits that wait.", "app"),),
    ),
    FigureQuery(sql.OLDEST_TO_VALIDATE, by_short_name),
    FigureQuery(sql.NOT_COMPARABLE, by_short_name),
    FigureQuery(
        sql.TO_ASSIMILATE,
        by_short_name,
        metrics=(Metric("jobs.to_assimilate", "cobblestone_workunits_to_assimilate", "Workunits that wait.", "app"),),
    ),
    FigureQuery(sql.OLDEST_TO_ASSIMILATE, by_short_name),
    FigureQuery(sql.TO_DELETE),
    FigureQuery(sql.TO_TRANSITION),
    FigureQuery(sql.ROWS),
    read_ended,
)
EXPORT: Final = FigureQuery(sql.EXPORT)
CREDIT_READINGS: Final = (
    FigureQuery(sql.VERSIONS, by_version, is_sparse=True),
    FigureQuery(sql.SPREAD, by_version, is_sparse=True),
    FigureQuery(sql.LEAST_AVERAGES, by_short_name, is_sparse=True),
    FigureQuery(sql.CLAIMS, by_short_name, is_sparse=True),
    FigureQuery(sql.ON_PROBATION, by_short_name),
    FigureQuery(sql.LISTED_PAIRS, by_short_name),
    EXPORT,
)
_STATUS_READINGS: Final = (
    FigureQuery(sql.USERS_CREDITED),
    FigureQuery(sql.HOSTS_CREDITED),
    FigureQuery(sql.RESULTS_TO_DELETE),
)
_FAILING_HOSTS: Final = Table(
    "jobs.failing_hosts",
    failing_hosts,
    _("Computers that fail most"),
    (_("Computer"), _("App"), _("Without a valid result"), _("Errors"), _("Jobs per day")),
    _("No computer fails more than one in four jobs."),
    "credit.view_hostappversion",
)


_DAEMONS: Final = (Daemon("validator", "credit.tasks.start_validators"), Daemon("feeder", "credit.tasks.feed"))
PARTS: Final = (
    Part("jobs", JOBS, JOB_READINGS, [_FAILING_HOSTS], (*outcomes.WORDS, _NO_QUOTA)),
    Part("credit", CREDIT, CREDIT_READINGS),
    Part("status", (), _STATUS_READINGS, [Table("status.apps", _apps)], daemons=_DAEMONS),
)
