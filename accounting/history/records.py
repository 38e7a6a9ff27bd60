"""A volunteer's records and milestones, and the last week compared with a usual one. Only the volunteer sees them."""

from __future__ import annotations

import datetime as dt
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import Final

from django.db.models import BigIntegerField, F, Q, Sum
from django.db.models.functions import Cast

from accounting.history.periods import Period, Step
from accounting.history.sums import read_first_day, read_sums
from accounting.ledger.months import closed_until
from accounting.ledger.partitions import month_of, next_month
from accounting.models import BestDay, Day
from portal.models import User

_ONE_DAY: Final = dt.timedelta(days=1)
WEEK_DAYS: Final = 7
USUAL_WEEKS: Final = 12
LEAST_USUAL_WEEKS: Final = 4
MOST_MILESTONES: Final = 12
_LEAST_MILESTONE: Final = 100 * 1_000_000


@dataclass(frozen=True, slots=True)
class LatestWeek:
    """The credit of the seven days before today, and the median of the ``before`` weeks before them; None: too few
    weeks.
    """

    first: dt.date
    last: dt.date
    ec: int
    before: int
    usual: int | None

    @property
    def change(self) -> int | None:
        """The percentage by which it exceeds a usual week."""
        return round(100 * self.ec / self.usual) - 100 if self.usual else None

    @property
    def loss(self) -> int:
        return -(self.change or 0)


@dataclass(frozen=True, slots=True)
class Milestone:
    """The day on which the credit of all days reached an amount."""

    ec: int
    day: dt.date


@dataclass(frozen=True, slots=True)
class Records:
    """``best_year`` and ``best_month`` begin on their days; milestones are the latest, highest first."""

    first: dt.date
    active_days: int
    ec: int
    best_day: tuple[dt.date, int]
    best_month: tuple[dt.date, int]
    best_year: tuple[int, int]
    milestones: list[Milestone]
    week: LatestWeek


def read_records(user: User, today: dt.date) -> Records | None:
    """Read all records; None without any credit. Ten statements: of closed months, only those with a milestone are
    read.
    """
    first = read_first_day(user, today)
    if first is None:
        return None
    months = {
        cell.start: cell.amounts.credit
        for cell in read_sums(user, Period(first, today, "", Step.MONTH), None)
        if cell.amounts.credit
    }
    if not months:
        return None
    until = closed_until() or first
    best = [(row.day, row.ec, row.active_days) for row in BestDay.objects.filter(user=user)]
    # Days of months that are not closed
    days = _days(user, [(max(first, until), today)])
    best += [(day, ec, 1) for day, ec in days]
    years: dict[int, int] = {}
    for month, ec in months.items():
        years[month.year] = years.get(month.year, 0) + ec
    best_day, best_ec, _ = max(best, key=lambda record: record[1])
    return Records(
        first=first,
        active_days=sum(active for _, _, active in best),
        ec=sum(months.values()),
        best_day=(best_day, best_ec),
        best_month=max(months.items(), key=lambda record: record[1]),
        best_year=max(years.items(), key=lambda record: record[1]),
        milestones=_milestones(user, months),
        week=read_week(user, first, today),
    )


def read_week(user: User, first: dt.date, today: dt.date) -> LatestWeek:
    """Compare the last seven days with the weeks before; ``first``: the first day with work. One statement."""
    begin = today - WEEK_DAYS * _ONE_DAY
    before = min(USUAL_WEEKS, (begin - first).days // WEEK_DAYS) if first < begin else 0
    weeks = [0] * (before + 1)
    for day, ec in _days(user, [(begin - before * WEEK_DAYS * _ONE_DAY, today - _ONE_DAY)]):
        weeks[(today - _ONE_DAY - day).days // WEEK_DAYS] += ec
    this, *others = weeks
    usual = int(statistics.median(others)) if before >= LEAST_USUAL_WEEKS else None
    return LatestWeek(begin, today - _ONE_DAY, this, before, usual)


def _days(user: User, ranges: Sequence[tuple[dt.date, dt.date]]) -> list[tuple[dt.date, int]]:
    """Return days with credit and their amount, in order; one statement."""
    in_ranges = reduce(or_, [Q(day__range=days) for days in ranges])
    rows = Day.objects.filter(in_ranges, user=user).values("day").order_by("day")
    rows = rows.annotate(ec=Cast(Sum(F("cpu_ec") + F("gpu_ec")), BigIntegerField())).filter(ec__gt=0)
    return list(rows.values_list("day", "ec"))


def goals(total: int) -> Iterable[int]:
    """Return the milestones up to ``total``: 100, 200, 500, 1,000 credits and so on."""
    power = _LEAST_MILESTONE
    while power <= total:
        yield from (factor * power for factor in (1, 2, 5) if factor * power <= total)
        power *= 10


def _milestones(user: User, months: dict[dt.date, int]) -> list[Milestone]:
    ordered = sorted(months)
    reached = dict(zip(ordered, accumulate(months[month] for month in ordered), strict=True))
    latest_goals = list(goals(sum(months.values())))[-MOST_MILESTONES:]
    when = {goal: next(month for month in ordered if reached[month] >= goal) for goal in latest_goals}
    if not when:
        return []
    ranges = [(month, next_month(month) - _ONE_DAY) for month in sorted(set(when.values()))]
    days = _days(user, ranges)
    milestones = []
    for goal, month in when.items():
        so_far = reached[month] - months[month]
        for day, ec in days:
            if month_of(day) != month:
                continue
            so_far += ec
            if so_far >= goal:
                milestones.append(Milestone(goal, day))
                break
    return milestones[::-1]
