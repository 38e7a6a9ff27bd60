"""When the owner lets a client compute and use the network, and the owner's use of the computer. Pure.

Hours are those of the local clock, and days count from Sunday, as in the client's preferences. Daylight saving time is
not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from emulator.engine.scenario.checks import MAX_SECS, Between, Count, ScenarioError, check_limits

HOUR_SECS: Final = 3600.0
WEEK_SECS: Final = 7 * 24 * HOUR_SECS
Hour = Annotated[float, Between(0, 24)]


@dataclass(frozen=True, slots=True)
class DayHours:
    """The hours of one day of the week, which replace the usual ones: 0 is Sunday, 6 is Saturday."""

    day: Annotated[int, Between(0, 6)]
    start_hour: Hour
    end_hour: Hour


@dataclass(frozen=True, slots=True)
class Hours:
    """The part of each day from ``start_hour`` to ``end_hour``, with fractions of hours.

    As the client reads its preferences: two equal hours, and 0 to 24, are the whole day; 24 to 0 is never; from 22 to
    6 is the first six hours of a day and its last two.
    """

    start_hour: Hour = 0.0
    end_hour: Hour = 0.0
    days: Annotated[tuple[DayHours, ...], Count(0, 7)] = ()

    def spans_secs(self) -> tuple[tuple[float, float], ...]:
        """The time within a week, from Sunday 0:00 on, in order; adjacent spans are joined. () is never."""
        own = {day.day: day for day in self.days}
        spans: list[tuple[float, float]] = []
        for day in range(7):
            hours: Hours | DayHours = own.get(day, self)
            for start, end in _hours_of_day(hours.start_hour, hours.end_hour):
                first, last = (day * 24 + start) * HOUR_SECS, (day * 24 + end) * HOUR_SECS
                if spans and spans[-1][1] == first:
                    spans[-1] = (spans[-1][0], last)
                else:
                    spans.append((first, last))
        return tuple(spans)

    @property
    def is_always(self) -> bool:
        """Whether this is the whole week."""
        return self.spans_secs() == ((0.0, WEEK_SECS),)


def _hours_of_day(start: float, end: float) -> list[tuple[float, float]]:
    if start == end:
        return [(0.0, 24.0)]
    if start < end:
        return [(start, end)]
    return [span for span in ((0.0, end), (start, 24.0)) if span[1] > span[0]]


@dataclass(frozen=True, slots=True)
class Use:
    """A use of the computer by its owner, such as working at it, at random times.

    Within the ``hours`` it takes ``fraction`` of the time, in spells of ``mean_secs``: both spells and breaks have
    exponential lengths. 0 is never, 1 is all of the hours.
    """

    fraction: Annotated[float, Between(0, 1)] = 0.0
    mean_secs: Annotated[float, Between(1, MAX_SECS)] = 3600.0
    hours: Hours = Hours()


def check_hours(name: str, hours: Hours) -> None:
    check_limits(f"{name}.", hours)
    for day in hours.days:
        check_limits(f"{name}.", day)
        if day.day not in range(7):
            raise ScenarioError(f"{name}.day", "not_a_whole_number", value=day.day)
    if len({day.day for day in hours.days}) < len(hours.days):
        raise ScenarioError(f"{name}.days", "day_twice")


def check_use(name: str, use: Use) -> None:
    check_limits(f"{name}.", use)
    check_hours(f"{name}.hours", use.hours)
