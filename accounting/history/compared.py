"""A history compared with another range, its mean over seven days, and its running total."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from typing import Final

from accounting.history.periods import Period, Step
from accounting.history.reads import History, quantity
from accounting.history.sums import HistoryFilter, read_sums
from portal.models import User

MEAN_DAYS: Final = 7
_ONE_DAY: Final = dt.timedelta(days=1)


class Compare(StrEnum):
    """The range that a history is compared with."""

    NOTHING = "nothing"
    BEFORE = "before"
    YEAR = "year"


class Overlay(StrEnum):
    """What is drawn: each step by itself, with a mean of seven days, or the running total."""

    EACH = "each"
    MEAN = "mean"
    TOTAL = "total"


@dataclass(slots=True)
class Comparison:
    """Values shown beside a history's amounts, one for each step; empty lists where not requested.

    ``other``: the steps of the range ``first`` to ``last``, in order, at most as many as the history has;
    ``other_total``: of all its days. A leap year has a day more, and the same number of days may touch a week more.
    ``means`` and ``running`` are of the history itself.
    """

    first: dt.date | None = None
    last: dt.date | None = None
    other: list[int] = field(default_factory=list)
    other_total: int = 0
    means: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)

    def change(self, total: int) -> int | None:
        """Return by how many per cent ``total`` exceeds the other range (negative: falls short); None if that is
        empty.
        """
        return round(100 * total / self.other_total) - 100 if self.other_total else None


def read_comparison(user: User, history: History, compare: Compare, curve: Overlay, only: HistoryFilter) -> Comparison:
    """Read what was requested; one statement (by months up to three) for the other range, and one for the mean."""
    comparison = Comparison()
    totals = [line.total for line in history.lines]
    if compare is not Compare.NOTHING:
        other = other_period(history.period, compare)
        comparison.first, comparison.last = other.first, other.last
        amounts = _amounts(user, history, other, only)
        comparison.other, comparison.other_total = amounts[: len(totals)], sum(amounts)
    if curve is Overlay.MEAN:
        first = history.period.first
        earlier = Period(first - (MEAN_DAYS - 1) * _ONE_DAY, first - _ONE_DAY, "", Step.DAY)
        comparison.means = means(_amounts(user, history, earlier, only), totals)
    if curve is Overlay.TOTAL:
        comparison.running = list(accumulate(totals))
    return comparison


def _amounts(user: User, history: History, period: Period, only: HistoryFilter) -> list[int]:
    sums = {cell.start: quantity(cell.amounts, history.show) for cell in read_sums(user, period, None, only=only)}
    return [sums.get(start, 0) for start in period.starts()]


def means(earlier: Sequence[int], totals: Sequence[int]) -> list[int]:
    """Return the mean of each day and the six before it; ``earlier``: the six days before the first."""
    days = [*earlier, *totals]
    return [sum(days[end - MEAN_DAYS : end]) // MEAN_DAYS for end in range(MEAN_DAYS, len(days) + 1)]


def other_period(period: Period, compare: Compare) -> Period:
    """Return the same days a year before, or the same number of days or months just before."""
    if compare is Compare.YEAR:
        first, last = _months_before(period.first, 12), _months_before(period.last, 12)
    elif period.step is Step.MONTH:
        months = sum(1 for _ in period.starts())
        first, last = _months_before(period.first, months), _months_before(period.last, months)
    else:
        length = dt.timedelta(days=period.days)
        first, last = period.first - length, period.first - _ONE_DAY
    return replace(period, first=first, last=last, preset="", problems=[])


def _months_before(day: dt.date, months: int) -> dt.date:
    """Return the same day of an earlier month, or that month's last; the last day of a month stays one."""
    place = day.year * 12 + day.month - 1 - months
    month = dt.date(place // 12, place % 12 + 1, 1)
    end = (month.replace(day=28) + 4 * _ONE_DAY).replace(day=1) - _ONE_DAY
    is_last = (day + _ONE_DAY).day == 1
    return end if is_last else month.replace(day=min(day.day, end.day))
