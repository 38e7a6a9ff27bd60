"""Combine a computer's estimated and granted credit at one project into one total that never goes down.

Pure: sums per UTC day in, what they count as out. Amounts are whole numbers of 1e-6 credits. docs/reconciliation.md has
the rule, its proof and its limits.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SETTLING_DAYS: Final = 30
"""Estimated work that the project has not granted after this many days is taken for refused.

BOINC's jobs mostly have a fortnight, and one that was not returned gets another fortnight on a second computer.
"""
MAX_OPEN_DAYS: Final = 400
"""The same where the project no longer publishes statistics, so that pages read a bounded range."""

LEAST_ESTIMATE: Final = 1_000_000_000
"""Below 1,000 credits, a few jobs decide the ratio."""
LEAST_COMPUTERS: Final = 8
"""With fewer computers at a project, their median says little about it."""
SPREAD: Final = 4.0
"""An honest computer's ratio lies within this factor of the median of its project."""
SPREAD_ALONE: Final = 20.0
"""The same around 1, where the project has no median."""


@dataclass(frozen=True, slots=True)
class DayStand:
    """What a day's credit counts as: granted, estimated where no grants are known, or provisional."""

    granted: int = 0
    estimated: int = 0
    provisional: int = 0

    def plus(self, other: DayStand) -> DayStand:
        return DayStand(
            self.granted + other.granted, self.estimated + other.estimated, self.provisional + other.provisional
        )


@dataclass(frozen=True, slots=True)
class SettledCredit:
    """What is known of one computer at a project whose statistics have listed it.

    ``seen_on``: the day on which they first listed it; ``read_on``: the day of the last ones read. ``estimated``: the
    credit estimated through ``seen_on``. ``granted``: the credit granted since. ``is_whole``: ``granted`` is all that
    the project ever granted it; otherwise it first came with a total of unknown origin.
    """

    seen_on: dt.date
    read_on: dt.date
    estimated: int
    granted: int
    is_whole: bool

    @property
    def settled(self) -> int:
        """The total, which never goes down, because neither ``estimated`` nor ``granted`` does."""
        return max(self.estimated, self.granted) if self.is_whole else self.estimated + self.granted

    def is_estimated(self, day: dt.date) -> bool:
        """Whether a day's estimate stays in the total for good."""
        return not self.is_whole and day <= self.seen_on

    def closed_through(self, today: dt.date) -> dt.date:
        """Return the last day whose estimate no longer waits for a grant."""
        oldest_open = max(self.read_on - dt.timedelta(days=SETTLING_DAYS), today - dt.timedelta(days=MAX_OPEN_DAYS))
        return oldest_open if self.is_whole else max(self.seen_on, oldest_open)


def open_days(
    seen: SettledCredit, estimates: Mapping[dt.date, int], grants: Mapping[dt.date, int], today: dt.date
) -> dict[dt.date, DayStand]:
    """Return the part of each open day's estimate that no grant has paid, in the order of days.

    It is provisional, unless the total already includes it. Both mappings need all days after
    ``seen.closed_through(today)``; earlier ones change nothing.
    """
    closed = seen.closed_through(today)
    waiting: dict[dt.date, list[int]] = {}
    open_: deque[list[int]] = deque()
    for day in sorted(day for day in {*estimates, *grants} if day > closed):
        waiting[day] = [estimates.get(day, 0)]
        open_.append(waiting[day])
        _pay(open_, grants.get(day, 0))
    return {
        day: DayStand(estimated=amount) if day <= seen.seen_on else DayStand(provisional=amount)
        for day, (amount,) in waiting.items()
    }


def stand(
    seen: SettledCredit | None, estimates: Mapping[dt.date, int], grants: Mapping[dt.date, int], today: dt.date
) -> dict[dt.date, DayStand]:
    """Return what each day's credit counts as, in the order of days; ``seen`` None: no statistics have listed the
    computer.
    """
    stands = {}
    for day in sorted({*estimates, *grants}):
        stays = seen is None or seen.is_estimated(day)
        stands[day] = DayStand(grants.get(day, 0), estimates.get(day, 0) if stays else 0)
    if seen is not None:
        for day, unpaid in open_days(seen, estimates, grants, today).items():
            stands[day] = stands[day].plus(unpaid)
    return stands


def _pay(open_: deque[list[int]], grant: int) -> None:
    """Deduct a grant from the waiting estimates, oldest first. Any remainder is not carried over."""
    while grant and open_:
        paid = min(open_[0][0], grant)
        open_[0][0] -= paid
        grant -= paid
        if not open_[0][0]:
            open_.popleft()


def expected_range(median: float | None, computers: int) -> tuple[float, float]:
    """Return the least and the largest ratio of granted to estimated credit of an honest computer at a project.

    ``median``: that of the ``computers`` with enough credit there.
    """
    if median and computers >= LEAST_COMPUTERS:
        return median / SPREAD, median * SPREAD
    return 1 / SPREAD_ALONE, SPREAD_ALONE


def ratio(granted: int, estimated: int) -> float | None:
    """Return granted divided by estimated credit; None if there is too little to judge."""
    return granted / estimated if estimated >= LEAST_ESTIMATE else None
