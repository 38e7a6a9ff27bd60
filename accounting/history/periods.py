"""Ranges of days for histories: read from a page's address, cut into days, weeks or months. Pure: no clock, no Django.

Days are UTC days. Every request gives a range that a page can show, with a list of what could not be done as asked;
accounting/history/texts.py has the words.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

PRESETS: Final = ("7", "30", "90", "year", "all")
DEFAULT_PRESET: Final = "30"
MAX_YEARS: Final = 50
MAX_DAY_STEPS: Final = 366
MAX_WEEK_STEPS: Final = 530  # ten years

_ONE_DAY = dt.timedelta(days=1)
_OLDEST = dt.date(1970, 1, 1)


class Step(StrEnum):
    """The length of time of one bar, and of one line of the table."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class ProblemKind(StrEnum):
    """The ways in which a range differs from the request."""

    UNKNOWN_RANGE = "unknown_range"
    FUTURE = "future"
    NO_DATE = "no_date"
    EXCHANGED = "exchanged"
    TOO_LONG = "too_long"
    UNKNOWN_STEP = "unknown_step"
    TOO_FINE = "too_fine"


@dataclass(frozen=True, slots=True)
class Problem:
    """One way in which a range differs from the request.

    ``value``: for NO_DATE, the text; for TOO_LONG, the first day shown; for TOO_FINE, the step shown.
    """

    kind: ProblemKind
    value: str = ""


@dataclass(slots=True)
class Period:
    """The days from ``first`` to ``last``, both included; ``preset`` is one of PRESETS, or empty for free dates."""

    first: dt.date
    last: dt.date
    preset: str
    step: Step
    problems: list[Problem] = field(default_factory=list)

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def starts(self) -> Iterator[dt.date]:
        """Return the first day of each step: a Monday for weeks, the first of a month; the first may be before the
        range.
        """
        start = start_of(self.first, self.step)
        while start <= self.last:
            yield start
            start = next_start(start, self.step)


def start_of(day: dt.date, step: Step) -> dt.date:
    """Return the first day of the step that contains the day."""
    if step is Step.WEEK:
        return day - dt.timedelta(days=day.weekday())
    return day.replace(day=1) if step is Step.MONTH else day


def next_start(start: dt.date, step: Step) -> dt.date:
    """Return the first day of the step after the one that begins at ``start``."""
    if step is Step.MONTH:
        return (start.replace(day=28) + dt.timedelta(days=4)).replace(day=1)
    return start + (_ONE_DAY if step is Step.DAY else 7 * _ONE_DAY)


def read_period(params: Mapping[str, str], today: dt.date, earliest: dt.date | None = None) -> Period:
    """Read the range that an address asks for by ``range`` or by ``from`` and ``to``, and its ``step``.

    Default: the last thirty days. ``earliest`` is where "all" begins: the first day with something to see. Never fails:
    anything impossible is replaced, and listed in ``problems``.
    """
    problems: list[Problem] = []
    first = _read_day(params, "from", problems)
    last = _read_day(params, "to", problems)
    preset = params.get("range", "")
    if preset and preset not in PRESETS:
        problems.append(Problem(ProblemKind.UNKNOWN_RANGE))
        preset = ""
    if first is not None and first > today:
        problems.append(Problem(ProblemKind.FUTURE))
    if problems or (first is None and last is None):
        preset = preset or DEFAULT_PRESET
        first, last = _preset_days(preset, today, earliest)
    else:
        preset = ""
        first, last = _clip(first, last, today, problems)
    step = _read_step(params.get("step", ""), first, last, problems)
    return Period(first=first, last=last, preset=preset, step=step, problems=problems)


def _preset_days(preset: str, today: dt.date, earliest: dt.date | None) -> tuple[dt.date, dt.date]:
    if preset == "all" and earliest is not None:
        return min(max(earliest, earliest_for(today)), today), today
    if preset == "year":
        return today.replace(month=1, day=1), today
    # An account without work has no first day and gets the usual range.
    days = int(preset) if preset.isdigit() else int(DEFAULT_PRESET)
    return today - (days - 1) * _ONE_DAY, today


def earliest_for(last: dt.date) -> dt.date:
    """Return the first day of a range of the greatest length; day 28 so that it exists in every year."""
    return last.replace(year=max(1, last.year - MAX_YEARS), day=min(last.day, 28))


def _read_day(params: Mapping[str, str], name: str, problems: list[Problem]) -> dt.date | None:
    text = params.get(name, "").strip()
    if not text:
        return None
    try:
        return dt.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        # Cut, as an address can be very long.
        problems.append(Problem(ProblemKind.NO_DATE, text[:20]))
        return None


def _clip(
    first: dt.date | None, last: dt.date | None, today: dt.date, problems: list[Problem]
) -> tuple[dt.date, dt.date]:
    """Return two days in order, none in the future, at most MAX_YEARS apart; a missing one becomes today or 30 days
    before.
    """
    last = min(last or today, today)
    first = first or max(earliest_for(last), last - 29 * _ONE_DAY if last.year > 1 else last)
    if first > last:
        problems.append(Problem(ProblemKind.EXCHANGED))
        first, last = last, first
    if first < earliest_for(last):
        first = earliest_for(last)
        problems.append(Problem(ProblemKind.TOO_LONG, first.isoformat()))
    return first, last


def _read_step(text: str, first: dt.date, last: dt.date, problems: list[Problem]) -> Step:
    """Return the requested step, or the finest that does not make too many bars; by default, a fitting one."""
    days = (last - first).days + 1
    finest = Step.DAY if days <= MAX_DAY_STEPS else Step.WEEK if days <= 7 * MAX_WEEK_STEPS else Step.MONTH
    if not text:
        return Step.DAY if days <= 92 else Step.WEEK if days <= 800 else Step.MONTH
    try:
        step = Step(text)
    except ValueError:
        problems.append(Problem(ProblemKind.UNKNOWN_STEP))
        return finest
    order = list(Step)
    if order.index(step) < order.index(finest):
        problems.append(Problem(ProblemKind.TOO_FINE, finest))
        return finest
    return step


def neighbours(period: Period, today: dt.date) -> tuple[tuple[dt.date, dt.date] | None, tuple[dt.date, dt.date] | None]:
    """Return the ranges of the same length just before and just after; None where there is none to show."""
    length = dt.timedelta(days=period.days)
    before = None
    if period.preset != "all" and period.first - _OLDEST > length:
        before = (period.first - length, period.first - _ONE_DAY)
    after = (period.last + _ONE_DAY, period.last + length) if period.last < today else None
    return before, after
