"""What readers of the daily history get from archived months.

    with archived([user.pk], [(first, last)]) as old:
        rows = …  # of PostgreSQL, for the whole range
    for row in old.days(): …  # of the files

Each day is in one of the two, whatever is archived or brought back meanwhile: the transaction that moves a month waits
for readers of PostgreSQL, which hold the table of days from before they look which months are archived. Files are read
after that; one that was replaced meanwhile is looked for again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from accounting.engine.amounts import KINDS, Totals
from accounting.ledger.archive import store
from accounting.ledger.partitions import month_of, next_month
from accounting.models import ArchivePart, Day
from portal.models import Host

LEAST_AGE_MONTHS: Final = 15
"""Younger months stay in PostgreSQL: pages that show the last days, and open grants of up to 400 days, need them."""
_HOLD: Final = "LOCK TABLE accounting_day IN ACCESS SHARE MODE"
_ATTEMPTS: Final = 5
_ONE_DAY: Final = dt.timedelta(days=1)
Range = tuple[dt.date, dt.date]
"""Days, both ends included."""


class ArchivedDay(NamedTuple):
    """What a computer was credited at a project on a day, as in `accounting.models.Day`."""

    user_id: int
    day: dt.date
    project_id: int
    host_id: int
    amounts: Totals
    flags: int


def young_from(today: dt.date) -> dt.date:
    """The first month that may not be archived yet."""
    place = today.year * 12 + today.month - 1 - LEAST_AGE_MONTHS
    return dt.date(max(place // 12, 1), place % 12 + 1, 1)


@dataclass(frozen=True, slots=True)
class Archived:
    """The archived days of some volunteers in some ranges."""

    users: Collection[int] = ()
    ranges: Sequence[Range] = ()
    parts: dict[dt.date, list[ArchivePart]] = field(default_factory=dict)
    merged: dict[int, int] = field(default_factory=dict)

    def days(self) -> Iterator[ArchivedDay]:
        """The days in the order of time, project and computer, a month at a time; those of a computer that was merged
        into another are the other one's. Raises ArchiveUnreadable.
        """
        for month, parts in self.parts.items():
            yield from _as_now(self._rows(month, parts), self.merged, self.ranges)

    def after(self, day: dt.date) -> Archived:
        """The same from a day on."""
        ranges = [(max(first, day), last) for first, last in self.ranges if last >= day]
        parts = {month: parts for month, parts in self.parts.items() if month >= month_of(day)}
        return replace(self, ranges=ranges, parts=parts)

    def _rows(self, month: dt.date, parts: list[ArchivePart]) -> list[ArchivedDay]:
        for _ in range(_ATTEMPTS):
            try:
                return [row for part in parts for row in read_part(part, self.users)]
            except store.FileMissing:
                # Replaced, or brought back to PostgreSQL, since somebody looked; or lost.
                with archived(self.users, [(month, next_month(month) - _ONE_DAY)]) as now:
                    here = _in_database(self.users, month)
                again = now.parts.get(month, [])
                if not again:
                    return here
                if again == parts:
                    raise
                parts = again
        raise store.ArchiveUnreadable(f"the files of {month:%Y-%m} were replaced {_ATTEMPTS} times meanwhile")


@contextmanager
def archived(users: Collection[int], ranges: Sequence[Range]) -> Iterator[Archived]:
    """What of these days is archived; whoever asks reads the same range from PostgreSQL inside. Three statements at
    most, and none for ranges that are too young.
    """
    young = young_from(timezone.now().date())
    old = [(first, last) for first, last in ranges if first < young and first <= last]
    if not old or not users:
        yield Archived()
        return
    with transaction.atomic(using=connection.alias, savepoint=False):
        with connection.cursor() as cursor:
            cursor.execute(_HOLD)
        parts = _parts(users, old)
        yield Archived(users, old, parts, merged_hosts(users) if parts else {})


def read_part(part: ArchivePart, users: Collection[int] | None) -> Iterator[ArchivedDay]:
    """The days of these volunteers in a file, or of all, with the computers that they were written with."""
    # Only where there is something archived: it takes much memory.
    from accounting.ledger.archive.parquet import read_rows

    with store.opened(part.name) as file:
        for user, day, project, host, *amounts, flags in read_rows(file, users):
            yield ArchivedDay(user, day, project, host, Totals(*amounts), flags)


def merged_hosts(users: Collection[int]) -> dict[int, int]:
    """Computers that were merged into another, and that other one."""
    found = Host.objects.filter(owner__in=list(users)).exclude(merged_into=None)
    return {pk: kept for pk, kept in found.values_list("pk", "merged_into_id") if kept is not None}


def _parts(users: Collection[int], ranges: Sequence[Range]) -> dict[dt.date, list[ArchivePart]]:
    within = reduce(or_, [Q(month__gte=month_of(first), month__lte=last) for first, last in ranges])
    found: dict[dt.date, list[ArchivePart]] = {}
    parts = ArchivePart.objects.filter(within, first_user__lte=max(users), last_user__gte=min(users))
    for part in parts.order_by("month", "first_user"):
        if any(part.first_user <= user <= part.last_user for user in users):
            found.setdefault(part.month_id, []).append(part)
    return found


def _in_database(users: Collection[int], month: dt.date) -> list[ArchivedDay]:
    rows = Day.objects.filter(user__in=list(users), day__gte=month, day__lt=next_month(month))
    return [
        ArchivedDay(user, day, project, host, Totals(*amounts), flags)
        for user, day, project, host, *amounts, flags in rows.values_list(
            "user_id", "day", "project_id", "host_id", *KINDS, "flags"
        )
    ]


def _as_now(rows: list[ArchivedDay], merged: dict[int, int], ranges: Sequence[Range]) -> Iterator[ArchivedDay]:
    found: dict[tuple[int, dt.date, int, int], ArchivedDay] = {}
    for row in rows:
        if not any(first <= row.day <= last for first, last in ranges):
            continue
        row = row._replace(host_id=merged.get(row.host_id, row.host_id))
        place = row[:4]
        if (other := found.get(place)) is not None:
            row = row._replace(amounts=row.amounts.plus(other.amounts), flags=row.flags | other.flags)
        found[place] = row
    yield from sorted(found.values(), key=lambda row: (row.day, row.project_id, row.host_id, row.user_id))
