"""One year of a volunteer's history: its calendar, its months, its projects and computers."""

from __future__ import annotations

import calendar
import datetime as dt
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from accounting.engine.amounts import NO_WORK, Totals
from accounting.history.periods import Period, Step
from accounting.history.reads import By, Group, Show, named_groups, read_cells
from accounting.history.sums import read_first_day, read_sums
from portal.models import User

_ONE_DAY: Final = dt.timedelta(days=1)
_QUARTERS: Final = 4


@dataclass(frozen=True, slots=True)
class CalendarDay:
    """A day's credit, and its shade: 0 for none, 1 to 4 by quartiles of the year's days with any.

    ``week`` and ``weekday``: its position in its month's drawing, from 0; weeks begin on Mondays.
    """

    day: dt.date
    ec: int
    level: int
    week: int
    weekday: int

    @property
    def x(self) -> int:
        """The x position in the drawing of its month, whose days are 14 apart."""
        return 14 * self.weekday

    @property
    def y(self) -> int:
        return 14 * self.week


@dataclass(frozen=True, slots=True)
class YearMonth:
    """A month of the year, up to today. ``best``: its day with most credit."""

    first: dt.date
    last: dt.date
    days: list[CalendarDay]
    amounts: Totals

    @property
    def best(self) -> CalendarDay | None:
        return max((day for day in self.days if day.ec), key=lambda day: day.ec, default=None)

    @property
    def active_days(self) -> int:
        return sum(bool(day.ec) for day in self.days)


@dataclass(frozen=True, slots=True)
class Year:
    """``limits``: least credit of each level of the calendar. ``before``: credit of the same days a year before.

    ``earlier`` and ``later``: neighbouring years with something to see.
    """

    first: dt.date
    last: dt.date
    months: list[YearMonth]
    limits: list[int]
    totals: Totals
    before: int
    projects: list[Group]
    hosts: list[Group]
    earlier: int | None
    later: int | None

    @property
    def active_days(self) -> int:
        return sum(month.active_days for month in self.months)

    @property
    def best(self) -> CalendarDay | None:
        return max((month.best for month in self.months if month.best), key=lambda day: day.ec, default=None)

    @property
    def change(self) -> int | None:
        """The percentage by which it exceeds the same days a year before; None if they have nothing."""
        return round(100 * self.totals.credit / self.before) - 100 if self.before else None

    @property
    def loss(self) -> int:
        return -(self.change or 0)


def read_year(user: User, year: int, today: dt.date) -> Year | None:
    """Read a year, up to today; None before the first day with work and for future years. Up to 14 statements."""
    begin = read_first_day(user, today)
    if begin is None or not begin.year <= year <= today.year:
        return None
    days = Period(dt.date(year, 1, 1), min(dt.date(year, 12, 31), today), "", Step.DAY)
    months = replace(days, step=Step.MONTH)
    by_day = {cell.start: cell.amounts for cell in read_sums(user, days, None)}
    limits = _limits([amounts.credit for amounts in by_day.values()])
    totals = NO_WORK
    for amounts in by_day.values():
        totals = totals.plus(amounts)
    end = days.last.replace(year=year - 1, day=min(days.last.day, 28 if days.last.month == 2 else 31))
    before = read_sums(user, Period(dt.date(year - 1, 1, 1), end, "", Step.MONTH), None)
    return Year(
        first=days.first,
        last=days.last,
        months=[_month(start, min(days.last, _end_of(start)), by_day, limits) for start in months.starts()],
        limits=limits,
        totals=totals,
        before=sum(cell.amounts.credit for cell in before),
        projects=named_groups(user, read_cells(user, months, By.PROJECT), Show.CREDIT, By.PROJECT),
        hosts=named_groups(user, read_cells(user, months, By.COMPUTER), Show.CREDIT, By.COMPUTER),
        earlier=year - 1 if begin.year < year else None,
        later=year + 1 if year < today.year else None,
    )


def _end_of(month: dt.date) -> dt.date:
    return month.replace(day=calendar.monthrange(month.year, month.month)[1])


def _month(first: dt.date, last: dt.date, by_day: dict[dt.date, Totals], limits: Sequence[int]) -> YearMonth:
    days = []
    totals = NO_WORK
    for number in range((last - first).days + 1):
        day = first + number * _ONE_DAY
        amounts = by_day.get(day, NO_WORK)
        totals = totals.plus(amounts)
        place = first.weekday() + number
        days.append(CalendarDay(day, amounts.credit, _level(amounts.credit, limits), place // 7, place % 7))
    return YearMonth(first, last, days, totals)


def _limits(credits_: Sequence[int]) -> list[int]:
    """Return the least credit of each quartile of the days with any, lowest quartile first; limits may be equal."""
    active = sorted(ec for ec in credits_ if ec)
    return sorted({active[len(active) * quarter // _QUARTERS] for quarter in range(_QUARTERS)}) if active else []


def _level(ec: int, limits: Sequence[int]) -> int:
    return bisect_right(limits, ec) if ec else 0
