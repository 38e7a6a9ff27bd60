"""Read estimated and granted credit for pages: totals, the days of a range, and ratios of computers.

Amounts are whole numbers of 1e-6 credits; days are UTC days.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db import connection
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_noop

from accounting.engine.reconciliation import DayStand, SettledCredit, expected_range, open_days, ratio
from accounting.ledger.months import closed_until, split
from accounting.ledger.partitions import month_of
from accounting.reconciliation import sql
from accounting.reconciliation.texts import CREDITS_PER, UTC_STEPS
from portal.models import User
from portal.templatetags.display import day as day_text

NAMES: Final = (
    gettext_noop("Granted"),
    gettext_noop("Estimated, in the total"),
    gettext_noop("Provisional, not in the total"),
)
# Not the colours of projects. Hatched credit becomes solid.
_TOKENS: Final = ("--accent-fill", "--data-other", "--accent-fill")


@dataclass(frozen=True, slots=True)
class ReconciledHost:
    """A computer at a project: its whole estimate, and its settlement; None: the statistics never listed it.

    ``compared``: the estimate for the time in which grants are known. ``low`` and ``high``: the expected ratio.
    """

    host_id: int
    project_id: int
    estimated: int
    seen: SettledCredit | None
    compared: int = 0
    low: float = 0.0
    high: float = 0.0

    @property
    def settled(self) -> int:
        """The credit that it adds to the total."""
        return self.estimated if self.seen is None else self.seen.settled

    @property
    def granted(self) -> int:
        return 0 if self.seen is None else self.seen.granted


@dataclass(frozen=True, slots=True)
class Ratio:
    """Granted to estimated credit in the long run, and the ratio expected of an honest computer."""

    value: float
    low: float
    high: float

    @property
    def is_outside(self) -> bool:
        return not self.low <= self.value <= self.high


@dataclass(slots=True)
class Reconciled:
    """Totals, and what each step of a range counts as, with the steps' labels. ``begins``: their first days."""

    settled: int
    granted: int
    provisional: int
    has_grants: bool
    ratio: Ratio | None
    lines: list[tuple[str, DayStand]] = field(default_factory=list)
    begins: list[dt.date] = field(default_factory=list)

    @property
    def sums(self) -> DayStand:
        """The sum of what the range counts as."""
        total = DayStand()
        for _, stand in self.lines:
            total = total.plus(stand)
        return total

    @property
    def has_parts(self) -> bool:
        """Whether the range has more than estimates, so that there is something to compare."""
        sums = self.sums
        return self.has_grants and bool(sums.granted or sums.provisional)


def read_standings(user: User) -> list[ReconciledHost]:
    """Read every computer at every project; one statement, and one for the days on which statistics first listed
    them.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.STANDINGS, {"user": user.pk})
        standings = [_standing(*row) for row in cursor]
        seen_on = {standing.seen.seen_on for standing in standings if standing.seen is not None}
        if not seen_on:
            return standings
        cursor.execute(sql.SEEN_DAYS, {"user": user.pk, "days": sorted(seen_on)})
        days = {(host, project, day): estimated for host, project, day, estimated in cursor}
    return [_with_seen_day(standing, days) for standing in standings]


def _with_seen_day(standing: ReconciledHost, days: Mapping[tuple[int, int, dt.date], int]) -> ReconciledHost:
    """Add the estimate of the day on which each was first seen."""
    seen = standing.seen
    if seen is None:
        return standing
    more = days.get((standing.host_id, standing.project_id, seen.seen_on), 0)
    return replace(standing, seen=replace(seen, estimated=seen.estimated + more))


def _standing(
    host_id: int,
    project_id: int,
    credited: int,
    seen_on: dt.date | None,
    read_on: dt.date,
    estimated: int,
    granted: int,
    is_whole: bool,
    compared: int,
    median: float | None,
    computers: int | None,
) -> ReconciledHost:
    if seen_on is None:
        return ReconciledHost(host_id, project_id, credited, None)
    seen = SettledCredit(seen_on, read_on, estimated, granted, is_whole)
    return ReconciledHost(host_id, project_id, credited, seen, compared, *expected_range(median, computers or 0))


def total_of(standings: Iterable[ReconciledHost]) -> int:
    """Return the total, which never goes down."""
    return sum(standing.settled for standing in standings)


def ratio_of(standings: Iterable[ReconciledHost]) -> Ratio | None:
    """Return the long-run ratio over projects; the expected range is weighted by the estimate at each."""
    compared = [standing for standing in standings if standing.seen is not None and standing.compared]
    estimated = sum(standing.compared for standing in compared)
    value = ratio(sum(standing.granted for standing in compared), estimated)
    if value is None:
        return None
    low = sum(standing.low * standing.compared for standing in compared) / estimated
    return Ratio(value, low, sum(standing.high * standing.compared for standing in compared) / estimated)


def read_reconciled(
    user: User,
    starts: Sequence[tuple[dt.date, str]],
    days: tuple[dt.date, dt.date],
    today: dt.date,
    *,
    host_id: int | None = None,
    project_id: int | None = None,
    by_months: bool = False,
) -> Reconciled:
    """Read the totals, and what each step of a range of days counts as; steps begin on the days ``starts`` and have
    these labels.

    Of one computer or project only, if given. ``by_months``: each step is a month, so sums of months will do. Four
    statements, however many computers, projects and days there are, by months up to six; one, and no steps, where no
    grants are known.
    """
    standings = [
        standing
        for standing in read_standings(user)
        if host_id in (None, standing.host_id) and project_id in (None, standing.project_id)
    ]
    reconciled = Reconciled(
        settled=total_of(standings),
        granted=sum(standing.granted for standing in standings),
        provisional=0,
        has_grants=any(standing.seen is not None for standing in standings),
        ratio=ratio_of(standings),
    )
    if not reconciled.has_grants:
        return reconciled
    first, last = days
    steps = [DayStand() for _ in starts]
    begins = [day for day, _ in starts]
    seen_first = {
        month_of(standing.seen.seen_on)
        for standing in standings
        if standing.seen is not None and not standing.seen.is_whole
    }
    ranges, months = split(first, last, closed_until() if by_months else None, seen_first)
    params: dict[str, Any] = {"user": user.pk, "host": host_id, "project": project_id}
    for day, granted, estimated in _read_settled(params, ranges, months):
        _add(steps, begins, day, DayStand(int(granted), int(estimated)))
    for day, unpaid in _read_open(user, standings, today):
        reconciled.provisional += unpaid.provisional
        if first <= day <= last:
            _add(steps, begins, day, unpaid)
    reconciled.begins = begins
    reconciled.lines = [(title, step) for (_, title), step in zip(starts, steps, strict=True)]
    return reconciled


def _read_settled(
    params: dict[str, Any], ranges: Sequence[tuple[dt.date, dt.date]], months: Sequence[dt.date]
) -> Iterator[tuple[dt.date, int, int]]:
    """Read day or month, granted and estimated credit; a statement for days, and one for months."""
    if ranges:
        ends = {f"first{number}": first for number, (first, _) in enumerate(ranges)}
        ends |= {f"last{number}": last for number, (_, last) in enumerate(ranges)}
        with connection.cursor() as cursor:
            cursor.execute(sql.settled(len(ranges)), params | ends)
            yield from cursor.fetchall()
    if months:
        with connection.cursor() as cursor:
            cursor.execute(sql.SETTLED_MONTHS, params | {"months": list(months)})
            yield from cursor


def last_days(today: dt.date, count: int) -> tuple[list[tuple[dt.date, str]], tuple[dt.date, dt.date]]:
    """Return the last days as steps, and their range."""
    days = [today - dt.timedelta(days=back) for back in range(count - 1, -1, -1)]
    return [(day, day_text(day)) for day in days], (days[0], today)


def _add(steps: list[DayStand], begins: Sequence[dt.date], day: dt.date, more: DayStand) -> None:
    place = bisect_right(begins, day) - 1
    steps[place] = steps[place].plus(more)


def _read_open(user: User, standings: Iterable[ReconciledHost], today: dt.date) -> Iterable[tuple[dt.date, DayStand]]:
    """Read the unpaid part of each open day, of each computer at each project; one statement."""
    seen = {
        (standing.host_id, standing.project_id): standing.seen for standing in standings if standing.seen is not None
    }
    closed = {key: seen_credit.closed_through(today) for key, seen_credit in seen.items()}
    estimates: dict[tuple[int, int], dict[dt.date, int]] = {}
    grants: dict[tuple[int, int], dict[dt.date, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            sql.OPEN,
            {
                "user": user.pk,
                "hosts": [host for host, _ in closed],
                "projects": [project for _, project in closed],
                "closed": list(closed.values()),
                "oldest": min(closed.values(), default=today),
            },
        )
        for host, project, day, estimated, granted in cursor:
            estimates.setdefault((host, project), {})[day] = int(estimated)
            grants.setdefault((host, project), {})[day] = int(granted)
    for key in estimates:
        yield from open_days(seen[key], estimates[key], grants[key], today).items()


def chart_data(reconciled: Reconciled, per: str) -> list[dict[str, Any]]:
    """Build the bars of static/portal/bars.js: settled credit, and on top the provisional part."""
    steps = [step for _, step in reconciled.lines]
    columns = [[getattr(step, kind) for step in steps] for kind in ("granted", "estimated", "provisional")]
    return [
        {
            "id": "settled-chart",
            "x": gettext(UTC_STEPS[per]),
            "y": gettext(CREDITS_PER[per]),
            "labels": [_tick(day, per) for day in reconciled.begins],
            "series": [
                {
                    "name": gettext(name),
                    "token": token,
                    "hatched": name == NAMES[2],
                    "values": [micro / 1e6 for micro in column],
                }
                for name, token, column in zip(NAMES, _TOKENS, columns, strict=True)
            ],
            "stacked": True,
            "has_legend": True,
        }
    ]


def _tick(day: dt.date, per: str) -> str:
    return date_format(day, "M Y" if per == "month" else "MONTH_DAY_FORMAT")
