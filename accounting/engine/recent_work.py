"""Work of some days, and the part of it within the last 24 hours. Pure.

Days begin at midnight UTC, and clients report every few hours. So today's credit says little for half of the world's
mornings; that of the last 24 hours does not depend on the hour.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

DAY: Final = dt.timedelta(days=1)


@dataclass(slots=True)
class Work:
    """Credit (CPU and GPU together), run time and jobs of a period."""

    ec: int = 0
    cpu_time: int = 0
    gpu_time: int = 0
    succeeded: int = 0
    failed: int = 0

    def add(self, other: Work, part: float = 1.0) -> None:
        """Return this plus a part of other work."""
        for column in fields(self):
            setattr(self, column.name, getattr(self, column.name) + round(part * getattr(other, column.name)))


@dataclass(frozen=True, slots=True)
class ReportedDays:
    """A computer's reports of yesterday and today, and the time of the last one; ``is_active``: more is to be
    expected.
    """

    last_at: dt.datetime
    yesterday: Work
    today: Work
    is_active: bool


@dataclass(frozen=True, slots=True)
class Recent:
    """The last 24 hours: the reported work, and an estimate of the credit still to come."""

    work: Work
    to_come_ec: int

    @property
    def expects_more(self) -> bool:
        """Whether the credit to come is at least a hundredth of the reported credit."""
        return self.to_come_ec > 0 and 100 * self.to_come_ec >= self.work.ec


def part_of_yesterday(last_at: dt.datetime, now: dt.datetime) -> float:
    """Return the fraction of yesterday's report within the last 24 hours, as if the work had been done evenly over the
    time that the reports cover. The last of them came at ``last_at``.
    """
    midnight = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    covered_until = min(last_at, midnight)
    covered = covered_until - (midnight - DAY)
    return max(0.0, (covered_until - (now - DAY)) / covered) if covered > dt.timedelta(0) else 0.0


def recent_ec(yesterday_ec: int, today_ec: int, last_at: dt.datetime, now: dt.datetime) -> int:
    """Return a computer's reported credit of the last 24 hours."""
    return today_ec + round(part_of_yesterday(last_at, now) * yesterday_ec)


def last_24_hours(reports: Iterable[ReportedDays], now: dt.datetime) -> Recent:
    """Sum up the last 24 hours; a computer in contact is assumed to have gone on since its last report as before."""
    since = now - DAY
    work, to_come = Work(), 0.0
    for report in reports:
        before_ec = work.ec
        work.add(report.yesterday, part_of_yesterday(report.last_at, now))
        work.add(report.today)
        if report.is_active and report.last_at > since:
            to_come += (work.ec - before_ec) * ((now - report.last_at) / (report.last_at - since))
    return Recent(work, round(to_come))
