"""Sums of a volunteer's days by day, week or month, of all their work or of a part of it.

Every read names the user and a range of days, so that PostgreSQL touches only the months of the range. Closed months
(accounting/ledger/months.py) are read as their sums. Amounts are whole numbers of 1e-6 credits or seconds, and plain
counts of jobs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter, or_
from typing import Any, Final, NamedTuple

from django.contrib.postgres.aggregates import BitOr
from django.db.models import BigIntegerField, Case, DateField, F, Q, QuerySet, Sum, Value
from django.db.models.functions import Cast, Trunc

from accounting.engine.amounts import KINDS, Processor, Totals
from accounting.history.periods import Period, Step, earliest_for, start_of
from accounting.ledger.months import closed_until, split
from accounting.ledger.partitions import month_of, next_month
from accounting.models import Day, Month
from credit.app_history import reads
from portal.models import User

_ONE_DAY: Final = dt.timedelta(days=1)
# What the sums of a history are grouped by.
_PLACE: Final[list[str]] = ["start", "key"]


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """The part of the work that is shown: of one computer, at one project, on processors or GPUs; None: of all.

    Jobs are those of both, as clients do not say on which processors each ran. ``app_id``: of an app of this site's own
    project, which is then ``project_id``. The project knows its tasks, so the amounts are its own counts.
    """

    host_id: int | None = None
    project_id: int | None = None
    processor: Processor | None = None
    app_id: int | None = None

    @property
    def rows(self) -> dict[str, int]:
        """The conditions for rows of days, by field."""
        return {name: pk for name, pk in (("host_id", self.host_id), ("project_id", self.project_id)) if pk is not None}

    def part(self, amounts: Totals) -> Totals:
        """Return the part of these amounts that is shown."""
        return amounts if self.processor is None else self.processor.part(amounts)


NO_FILTER: Final = HistoryFilter()


class AppDay(NamedTuple):
    """The amounts of a computer's tasks of an app of this site's own project on a day, or in a week or month."""

    start: dt.date
    project_id: int
    host_id: int
    amounts: Totals


@dataclass(frozen=True, slots=True)
class Key:
    """The key that sums are split by: an SQL number for a row, and one for an app's day."""

    expression: F | Case
    of: Callable[[AppDay], int]


BY_PROJECT: Final = Key(F("project_id"), attrgetter("project_id"))
BY_HOST: Final = Key(F("host_id"), attrgetter("host_id"))


@dataclass(frozen=True, slots=True)
class Cell:
    """The sums of one step at one project or computer (``key``; 0 when not split), and its days' combined flags."""

    start: dt.date
    key: int
    amounts: Totals
    flags: int


def read_sums(
    user: User, period: Period, key: Key | None, limit: int | None = None, only: HistoryFilter = NO_FILTER
) -> list[Cell]:
    """Read at most ``limit`` sums per step and ``key``, in order of time.

    One statement. By months two or three: how far they are closed, their sums, and the days of open ones.
    """
    if only.app_id is not None:
        return _of_app(user, period, key, only)[:limit]
    days, months = split(period.first, period.last, closed_until() if period.step is Step.MONTH else None)
    expression = None if key is None else key.expression
    cells: list[Cell] = []
    if months:
        closed = Month.objects.filter(month__range=(months[0], months[-1]))
        cells += _sums(closed, user, F("month"), expression, only, limit)
    if days:
        rows = Day.objects.filter(reduce(or_, [Q(day__range=span) for span in days]))
        start = F("day") if period.step is Step.DAY else Trunc("day", period.step, output_field=DateField())
        cells += _sums(rows, user, start, expression, only, limit)
        cells.sort(key=attrgetter("start"))
    return cells[:limit]


def _of_app(user: User, period: Period, key: Key | None, only: HistoryFilter) -> list[Cell]:
    app_days = reads.AppDays(user.pk, only.app_id or 0, period.first, period.last, only.host_id)
    cells: dict[tuple[dt.date, int], Cell] = {}
    for row in reads.read_steps(app_days, period.step):
        work = AppDay(row.start, only.project_id or 0, row.host_id, Totals(*row.amounts))
        place = (start_of(work.start, period.step), key.of(work) if key else 0)
        amounts = only.part(work.amounts)
        if (other := cells.get(place)) is not None:
            amounts = amounts.plus(other.amounts)
        cells[place] = Cell(*place, amounts, 0)
    return list(cells.values())


def _sums(
    rows: QuerySet[Any], user: User, start: Any, key: F | Case | None, only: HistoryFilter, limit: int | None
) -> list[Cell]:
    day_sums = (
        rows.filter(user=user, **only.rows)
        .annotate(start=start, key=key or Value(0))
        .values(*_PLACE)
        .annotate(
            **{f"sum_{kind}": Cast(Sum(kind), BigIntegerField()) for kind in KINDS},
            all_flags=BitOr("flags"),
        )
        .order_by("start")
    )
    return [
        Cell(
            start=row["start"],
            key=row["key"],
            amounts=only.part(Totals(*(row[f"sum_{kind}"] for kind in KINDS))),
            flags=row["all_flags"] or 0,
        )
        for row in (day_sums if limit is None else day_sums[:limit])
    ]


def read_first_day(user: User, today: dt.date, projects: Collection[int] | None = None) -> dt.date | None:
    """Read the first day with work; two or three statements, each of which ends at its first row.

    ``projects``: with work for one of these; None: for any.
    """
    first = earliest_for(today)
    only = {} if projects is None else {"project__in": projects}
    months = Month.objects.filter(user=user, month__gte=month_of(first), **only).order_by("month").values("month")
    if (month := months.first()) is not None:
        begin = max(first, month["month"])
        # A month may have only grants.
        end = next_month(month["month"]) - _ONE_DAY
        return _first_day(user, begin, end, only) or _first_day(user, begin, today, only)
    return _first_day(user, max(first, closed_until() or first), today, only)


def _first_day(user: User, first: dt.date, last: dt.date, only: dict[str, Any]) -> dt.date | None:
    days = Day.objects.filter(user=user, day__range=(first, last), **only).order_by("day")
    return days.values_list("day", flat=True).first()
