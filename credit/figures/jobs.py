"""The jobs panel: what waits for what and since when, how results ended, which computers fail."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState
from credit.figures import outcomes, sql
from credit.figures.names import app_names
from credit.models import Result, Workunit
from portal.dashboard import registry
from portal.dashboard.registry import Combine, Figure, Panel, Sample, Source, Table, Unit
from portal.dashboard.rules import above, grows
from portal.dashboard.sql import ABOUT_ROWS

KEY: Final = "jobs"
STUCK_SECS: Final = 3600
"""What is ready is dealt with within seconds: what has waited for an hour is stuck."""

_RESULTS: Final = "admin:credit_result_changelist"
_WORKUNITS: Final = "admin:credit_workunit_changelist"
_TO_VALIDATE: Final = f"{_WORKUNITS}?need_validate__exact=1"
_TO_ASSIMILATE: Final = f"{_WORKUNITS}?assimilate_state__exact={AssimilateState.READY:d}"
_TO_DELETE: Final = f"{_WORKUNITS}?file_delete_state__exact={FileDeleteState.READY:d}"
_UNSENT: Final = f"{_RESULTS}?server_state__exact={ServerState.UNSENT:d}"
_FAILED: Final = f"{_RESULTS}?outcome__exact={Outcome.CLIENT_ERROR:d}"
_RETRY: Final = "admin:scheduler_retryentry_changelist"
_COMPUTER: Final = gettext_noop("computer %(number)s")
_NO_QUOTA: Final = gettext_noop("not set")
_hourly: Final = partial(Figure, per=_("per hour"), series=_("outcome"))

FIGURES: Final = (
    Figure("jobs.unsent", _("Unsent"), link=_UNSENT, series=_("app"), about=_("Results waiting to be sent.")),
    Figure(
        "jobs.unsent_oldest",
        _("Oldest unsent"),
        Unit.SECS,
        combine=Combine.MAX,
        link=_UNSENT,
        series=_("app"),
        trouble=above(
            14 * 86_400,
            _(
                "Jobs have been waiting to be sent for two weeks: {labels}. Is there a version that volunteers’ "
                "computers can run?"
            ),
        ),
    ),
    Figure(
        "jobs.in_progress",
        _("In progress"),
        link=f"{_RESULTS}?server_state__exact={ServerState.IN_PROGRESS:d}",
        series=_("app"),
    ),
    Figure(
        "jobs.late",
        _("Late, not timed out yet"),
        link=f"{_RESULTS}?server_state__exact={ServerState.IN_PROGRESS:d}",
        series=_("app"),
        about=_("Results whose deadline was more than ten minutes ago. The transitioner should have timed them out."),
        trouble=above(
            0, _("Late jobs are not being timed out: {labels}. Check the task “transition” and the retry queue.")
        ),
    ),
    Figure(
        "jobs.to_transition",
        _("Waiting for the transitioner"),
        link=_RETRY,
        link_text=_("Retry queue"),
        trouble=grows(_("More and more workunits are waiting for the transitioner.")),
    ),
    Figure(
        "jobs.to_transition_oldest",
        _("Oldest waiting for the transitioner"),
        Unit.SECS,
        combine=Combine.MAX,
        link=_RETRY,
        link_text=_("Retry queue"),
        trouble=above(STUCK_SECS, _("A workunit has been waiting for the transitioner for more than an hour.")),
    ),
    Figure(
        "jobs.to_validate",
        _("Waiting for validation"),
        link=_TO_VALIDATE,
        series=_("app"),
        trouble=grows(_("More and more workunits are waiting for validation.")),
    ),
    Figure(
        "jobs.to_validate_oldest",
        _("Oldest waiting for validation"),
        Unit.SECS,
        combine=Combine.MAX,
        link=_TO_VALIDATE,
        series=_("app"),
        about=_("Since the last result was reported; for the first 200 workunits of each app."),
        trouble=above(
            STUCK_SECS,
            _(
                "{labels}: a workunit has been waiting for validation for more than an hour. Open one to see why its "
                "outputs could not be compared."
            ),
        ),
    ),
    Figure(
        "jobs.not_comparable",
        _("Could not be compared"),
        link=f"{_TO_VALIDATE}&validate_fault__isempty=0",
        series=_("app"),
        trouble=above(0, _("{labels}: outputs could not be compared. Each workunit says why.")),
    ),
    Figure(
        "jobs.to_assimilate",
        _("Waiting for assimilation"),
        link=_TO_ASSIMILATE,
        series=_("app"),
        trouble=grows(_("More and more workunits are waiting for assimilation.")),
    ),
    Figure(
        "jobs.to_assimilate_oldest",
        _("Oldest waiting for assimilation"),
        Unit.SECS,
        combine=Combine.MAX,
        link=_TO_ASSIMILATE,
        series=_("app"),
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
        combine=Combine.MAX,
        trouble=above(6 * 3600, _("Files have been waiting for deletion for more than six hours.")),
    ),
    _hourly(
        "jobs.ended", _("Results that ended"), link=_RESULTS, history=outcomes.by(outcomes.outcome_name, ["outcome"])
    ),
    _hourly(
        "jobs.failed",
        _("Results that failed"),
        link=_FAILED,
        series=_("error"),
        about=_("Errors, time-outs, and outputs that could not be checked."),
        history=outcomes.by(outcomes.error_name, ["outcome", "exit_status"], outcomes.FAILURES),
        label_text=outcomes.error_shown,
    ),
    _hourly(
        "jobs.failed_by_app",
        _("Failed, by app"),
        link=_FAILED,
        series=_("app"),
        history=outcomes.by(lambda row: row.app, ["app_id"], outcomes.FAILURES),
    ),
    _hourly(
        "jobs.failed_by_version",
        _("Failed, by version"),
        link=_FAILED,
        series=_("version"),
        history=outcomes.by(lambda row: row.version, ["app_id", "app_version_id"], outcomes.FAILURES),
    ),
    _hourly(
        "jobs.failed_by_platform",
        _("Failed, by platform"),
        link=_FAILED,
        series=_("platform"),
        history=outcomes.by(lambda row: row.platform, ["app_version_id"], outcomes.FAILURES),
    ),
    Figure(
        "jobs.failed_share",
        _("Share of results that fail"),
        Unit.PERCENT,
        combine=Combine.MAX,
        link=_FAILED,
        series=_("app"),
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
TABLES: Final = (
    Table(
        "jobs.failing_hosts",
        _("Computers that fail most"),
        (_("Computer"), _("App"), _("Without a valid result"), _("Errors"), _("Jobs per day")),
        _("No computer fails more than one in four jobs."),
        "credit.view_hostappversion",
    ),
)
MAX_SERIES: Final = 8
"""Kinds of failures that are told apart: programs may end with any number, and what was taken is kept for good."""
_LEAST_ENDED: Final = 10
"""Shares of fewer results say nothing."""


def take(now: dt.datetime) -> Iterator[Sample]:
    outcomes.roll_up(now)
    names = app_names()
    with connection.cursor() as cursor:
        yield from _waiting(cursor, now, names)
        yield from _finishing(cursor, now, names)
        cursor.execute(ABOUT_ROWS, [[model._meta.db_table for model in (Workunit, Result)]])
        for table, about in cursor.fetchall():
            yield Sample("jobs.rows", about, table)
    yield from _ended(now)


def _waiting(cursor: CursorWrapper, now: dt.datetime, names: dict[int, str]) -> Iterator[Sample]:
    """All apps have a value, so that charts go down to 0."""
    cursor.execute(sql.UNSENT, {"now": now})
    found: dict[int, Any] = {app: row for app, *row in cursor.fetchall()}
    cursor.execute(sql.IN_PROGRESS, {"now": now})
    sent: dict[int, Any] = {app: row for app, *row in cursor.fetchall()}
    for app, name in names.items():
        count, age = found.get(app, (0, 0))
        yield Sample("jobs.unsent", count, name)
        yield Sample("jobs.unsent_oldest", age, name)
        count, late = sent.get(app, (0, 0))
        yield Sample("jobs.in_progress", count, name)
        yield Sample("jobs.late", late, name)


def _finishing(cursor: CursorWrapper, now: dt.datetime, names: dict[int, str]) -> Iterator[Sample]:
    for figure, statement, oldest in (
        ("jobs.to_validate", sql.TO_VALIDATE, sql.OLDEST_TO_VALIDATE),
        ("jobs.to_assimilate", sql.TO_ASSIMILATE, sql.OLDEST_TO_ASSIMILATE),
    ):
        cursor.execute(statement)
        counts = dict(cursor.fetchall())
        for app, name in names.items():
            yield Sample(figure, counts.get(app, 0), name)
            age = None
            if counts.get(app):
                cursor.execute(oldest, {"now": now, "app": app})
                age = cursor.fetchone()[0]
            yield Sample(f"{figure}_oldest", max(age or 0, 0), name)
    cursor.execute(sql.NOT_COMPARABLE)
    faults = dict(cursor.fetchall())
    for app, name in names.items():
        yield Sample("jobs.not_comparable", faults.get(app, 0), name)
    for figure, statement in (("jobs.to_delete", sql.TO_DELETE), ("jobs.to_transition", sql.TO_TRANSITION)):
        cursor.execute(statement, {"now": now})
        count, age = cursor.fetchone()
        yield Sample(figure, count)
        yield Sample(f"{figure}_oldest", max(age, 0))


def _ended(now: dt.datetime) -> Iterator[Sample]:
    """Of the last full hour."""
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


def take_tables(now: dt.datetime) -> dict[str, list[list[object]]]:
    with connection.cursor() as cursor:
        cursor.execute(sql.FAILING_HOSTS)
        rows = cursor.fetchall()
    return {
        "jobs.failing_hosts": [
            [
                [given or domain or _COMPUTER % {"number": host}, f"{reverse(_RESULTS)}?host__id__exact={host}"],
                app,
                f"{100 * share:.0f} %",
                f"{100 * errors:.0f} %",
                str(quota or _NO_QUOTA),
            ]
            for host, given, domain, app, share, errors, quota in rows
        ]
    }


def register() -> None:
    """Called once, when the app is ready, if the site has a project."""
    registry.words.extend((*outcomes.WORDS, _COMPUTER, _NO_QUOTA))
    registry.add_panel(Panel(KEY, _("Jobs"), 2))
    registry.add_source(Source(KEY, FIGURES, take, TABLES, take_tables))
