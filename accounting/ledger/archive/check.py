"""Compare the files of archived months with what PostgreSQL knows of them: digests, sums, best days, projects' days."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import Q
from django.utils import timezone

from accounting.engine.amounts import KINDS, NO_WORK, Totals
from accounting.ledger.archive import store
from accounting.ledger.archive.reads import read_part
from accounting.ledger.partitions import next_month
from accounting.models import ArchivedMonth, ArchiveErasure, ArchivePart, BestDay, ErasedDay, Month, ProjectDay
from portal.models import Host

ERASED_WITHIN: Final = dt.timedelta(days=7)
"""So long the days of an erased account may still be in files."""
Place = tuple[int, int, int]
"""Volunteer, project, computer."""


@dataclass(slots=True)
class _Sums:
    """The sums of a file, or of what PostgreSQL has for the same volunteers."""

    months: dict[Place, tuple[Totals, int]] = field(default_factory=dict)
    best: dict[int, tuple[dt.date, int, int]] = field(default_factory=dict)


def differences() -> Iterator[str]:
    """A sentence for each difference of any archived month, and for each account that waits too long to be removed."""
    for month, expected in ArchivedMonth.objects.order_by("month").values_list("month", "rows"):
        parts = list(ArchivePart.objects.filter(month=month).order_by("first_user"))
        if (nrows := sum(part.rows for part in parts)) != expected:
            yield f"{month:%Y-%m}: {expected} rows are archived, but its files have {nrows}"
        yield from month_differences(month, parts)
    late = ArchiveErasure.objects.filter(erased_at__lt=timezone.now() - ERASED_WITHIN)
    for month, number in late.order_by("month", "user_number").values_list("month", "user_number"):
        yield f"account {number}: its days are still in the archive of {month:%Y-%m}"


def month_differences(month: dt.date, parts: Sequence[ArchivePart]) -> Iterator[str]:
    """A sentence for each difference of a month with these files, in the order of their volunteers."""
    days: dict[tuple[int, dt.date], Totals] = defaultdict(lambda: NO_WORK)
    erased = set(ArchiveErasure.objects.filter(month=month).values_list("user_number", flat=True))
    is_whole = True
    after = -1
    for part in parts:
        if (fault := file_fault(part)) is not None:
            yield fault
            is_whole, after = False, part.last_user
            continue
        if part.first_user <= after:
            yield f"archived file {part.name}: volunteer {part.first_user} is in another file, too"
        yield from _differences(month, after + 1, part.last_user, _sums_of(part, erased, days))
        after = part.last_user
    yield from _differences(month, after + 1, None, _Sums())
    if is_whole:
        yield from _project_differences(month, days)


def file_fault(part: ArchivePart) -> str | None:
    """In a sentence, what is wrong with a file: missing, unreadable, or not what was written."""
    try:
        size, found = store.digest(part.name)
        if (size, found) != (part.size_bytes, part.sha256):
            return f"archived file {part.name} is damaged: it has {size} bytes, SHA-256 {found[:12]}…"
        nrows = sum(1 for _ in read_part(part, None))
    except store.ArchiveUnreadable as error:
        return str(error)
    return None if nrows == part.rows else f"archived file {part.name} has {nrows} rows, not {part.rows}"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def merged_between(first_user: int, last_user: int) -> dict[int, int]:
    """Computers of these volunteers that were merged into another, and that other one."""
    found = Host.objects.filter(owner__gte=first_user, owner__lte=last_user).exclude(merged_into=None)
    return {pk: kept for pk, kept in found.values_list("pk", "merged_into_id") if kept is not None}


def _sums_of(part: ArchivePart, erased: set[int], days: dict[tuple[int, dt.date], Totals]) -> _Sums:
    """The sums of a file without erased accounts; adds its days to those of projects."""
    merged = merged_between(part.first_user, part.last_user)
    months: dict[Place, tuple[Totals, int]] = {}
    credit: dict[tuple[int, dt.date], int] = defaultdict(int)
    for row in read_part(part, None):
        if row.user_id in erased:
            continue
        place = (row.user_id, row.project_id, merged.get(row.host_id, row.host_id))
        amounts, flags = months.get(place, (NO_WORK, 0))
        months[place] = amounts.plus(row.amounts), flags | row.flags
        credit[row.user_id, row.day] += row.amounts.credit
        days[row.project_id, row.day] = days[row.project_id, row.day].plus(row.amounts)
    return _Sums(months, _best(credit))


def _best(credit: dict[tuple[int, dt.date], int]) -> dict[int, tuple[dt.date, int, int]]:
    found: dict[int, tuple[dt.date, int, int]] = {}
    for (user, day), ec in sorted(credit.items()):
        if ec:
            best, most, active = found.get(user, (day, 0, 0))
            found[user] = (day, ec, active + 1) if ec > most else (best, most, active + 1)
    return found


def _differences(month: dt.date, first_user: int, last_user: int | None, have: _Sums) -> Iterator[str]:
    """The sums of some volunteers, ``last_user`` None: of all from the first on."""
    some = Q(month=month, user__gte=first_user) & (Q() if last_user is None else Q(user__lte=last_user))
    wanted = _Sums()
    rows = Month.objects.filter(some).values_list("user_id", "project_id", "host_id", *KINDS, "flags")
    for user, project, host, *amounts, flags in rows.iterator():
        wanted.months[user, project, host] = Totals(*amounts), flags
    for user, day, ec, active in BestDay.objects.filter(some).values_list("user_id", "day", "ec", "active_days"):
        wanted.best[user] = day, ec, active
    for place in _unequal(wanted.months, have.months, (NO_WORK, 0)):
        user, project, host = place
        yield f"user {user}, {month:%Y-%m}, project {project}, host {host}: the month differs from its archived days"
    for user in _unequal(wanted.best, have.best, None):
        yield f"user {user}, {month:%Y-%m}: the best day differs from the archived days"


def _unequal(one: dict[Any, Any], other: dict[Any, Any], default: Any) -> Iterable[Any]:
    return [key for key in sorted({*one, *other}) if one.get(key, default) != other.get(key, default)]


def _project_differences(month: dt.date, days: dict[tuple[int, dt.date], Totals]) -> Iterator[str]:
    within = Q(day__gte=month, day__lt=next_month(month))
    found = defaultdict(lambda: NO_WORK, days)
    for project, day, *amounts in ErasedDay.objects.filter(within).values_list("project_id", "day", *KINDS):
        found[project, day] = found[project, day].plus(Totals(*amounts))
    rows = ProjectDay.objects.filter(within).values_list("project_id", "day", *KINDS)
    wanted = {(project, day): Totals(*amounts) for project, day, *amounts in rows}
    for project, day in _unequal(wanted, found, NO_WORK):
        yield f"project {project}, {day}: the roll-up differs from the archived days"
