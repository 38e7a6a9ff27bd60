"""Estimated and granted credit of one computer at one project become one total that never goes down.

Pure: sums per UTC day in, what they count as out. Amounts are whole numbers of 1e-6 credits.
docs/explanation/reconciliation.md has the rule, its proof and what it cannot do.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SETTLING_DAYS: Final = 30
"""So many days after it was estimated, work that the project has not granted is taken for refused.

BOINC's jobs mostly have a fortnight, and one that was not returned gets another fortnight on a second computer.
"""
MAX_OPEN_DAYS: Final = 400
"""The same where the project publishes no statistics any more, so that pages read a bounded range."""

LEAST_ESTIMATE: Final = 1_000_000_000
"""Below 1,000 credits, a few jobs decide the ratio."""
LEAST_COMPUTERS: Final = 8
"""With fewer computers at a project, their median says little of it."""
SPREAD: Final = 4.0
"""An honest computer's ratio lies within this factor of the median of its project."""
SPREAD_ALONE: Final = 20.0
"""The same about 1, where the project has no median."""


@dataclass(frozen=True, slots=True)
class DayStand:
    """What a day's credit counts as: granted, estimated where no grants are known, or provisional."""

    granted: int = 0
    estimated: int = 0
    provisional: int = 0

    @property
    def settled(self) -> int:
        """What the day adds to the total."""
        return self.granted + self.estimated

    def plus(self, other: DayStand) -> DayStand:
        return DayStand(
            self.granted + other.granted, self.estimated + other.estimated, self.provisional + other.provisional
        )


NOTHING: Final = DayStand()


def closed_through(since: dt.date, read_on: dt.date, today: dt.date) -> dt.date:
    """The last day whose estimate no longer waits for a grant.

    ``since``: the day on which the project's statistics first had the computer. ``read_on``: the day of the last
    statistics that were read.
    """
    oldest_open = max(read_on - dt.timedelta(days=SETTLING_DAYS), today - dt.timedelta(days=MAX_OPEN_DAYS))
    return max(since, oldest_open)


def stand(
    estimates: Mapping[dt.date, int],
    grants: Mapping[dt.date, int],
    since: dt.date | None,
    closed: dt.date | None,
) -> dict[dt.date, DayStand]:
    """What each day's credit counts as, in the order of days.

    ``since`` None: no statistics have had the computer, so all of it is estimated. ``closed`` is `closed_through`.
    Both mappings need the days after ``closed``; of earlier days, those that are asked for.
    """
    open_: deque[list[int]] = deque()
    waiting: dict[dt.date, list[int]] = {}
    for day in sorted({*estimates, *grants}):
        if since is None or closed is None or day <= closed:
            continue
        waiting[day] = [estimates.get(day, 0)]
        open_.append(waiting[day])
        _pay(open_, grants.get(day, 0))
    return {
        day: DayStand(
            granted=grants.get(day, 0),
            estimated=estimates.get(day, 0) if since is None or day <= since else 0,
            provisional=waiting[day][0] if day in waiting else 0,
        )
        for day in sorted({*estimates, *grants})
    }


def _pay(open_: deque[list[int]], grant: int) -> None:
    """Take a grant off the estimates that wait, the oldest first. What is left of it pays nothing later."""
    while grant and open_:
        paid = min(open_[0][0], grant)
        open_[0][0] -= paid
        grant -= paid
        if not open_[0][0]:
            open_.popleft()


def expected_range(median: float | None, computers: int) -> tuple[float, float]:
    """The least and the largest ratio of granted to estimated credit that an honest computer has at a project.

    ``median``: that of the ``computers`` with enough credit there.
    """
    if median and computers >= LEAST_COMPUTERS:
        return median / SPREAD, median * SPREAD
    return 1 / SPREAD_ALONE, SPREAD_ALONE


def ratio(granted: int, estimated: int) -> float | None:
    """Granted to estimated credit; None with too little of it to tell."""
    return granted / estimated if estimated >= LEAST_ESTIMATE else None
