"""Remove erased accounts from the files of archived months.

An account's days are read from the files first (`read_days`): a storage may take long to answer, and nobody is to wait
for it. They are added to the anonymous sums, and its number is noted for each month, in the transaction that erases it
(`note_erased`). A task writes the files that have it anew and removes the old ones.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass

import structlog
from django.db import connection, transaction
from django.db.models import F

from accounting.engine.amounts import NO_WORK, Totals
from accounting.ledger.archive import sql, store
from accounting.ledger.archive.moves import alone, remove_strays, write_part
from accounting.ledger.archive.reads import Archived, archived, read_part
from accounting.ledger.partitions import month_of
from accounting.models import ArchivedMonth, ArchiveErasure, ArchivePart

log = structlog.get_logger("archive")


@dataclass(frozen=True, slots=True)
class ArchivedSums:
    """What an account was credited by project and day in archived months, and the files that say so."""

    parts: dict[dt.date, list[ArchivePart]]
    sums: dict[tuple[int, dt.date], Totals]


def read_days(user_id: int, now: dt.datetime) -> ArchivedSums:
    """Read an account's archived days. Before the transaction that erases it. Raises `store.ArchiveUnreadable`."""
    sums: dict[tuple[int, dt.date], Totals] = defaultdict(lambda: NO_WORK)
    old = _archived_days(user_id, now)
    for row in old.days():
        sums[row.project_id, row.day] = sums[row.project_id, row.day].plus(row.amounts)
    return ArchivedSums(old.parts, sums)


def _archived_days(user_id: int, now: dt.datetime) -> Archived:
    with archived([user_id], [(dt.date.min, now.date())]) as old:
        return old


def note_erased(user_id: int, read: ArchivedSums, now: dt.datetime) -> None:
    """Keep the sums of an account's archived days, and note that they have to go. In the transaction that erases it,
    which holds AdvisoryLock.MONTHS, so no month moves meanwhile.

    Raises `store.ArchiveUnreadable` if one moved, or a file was replaced, since the days were read.
    """
    if _archived_days(user_id, now).parts != read.parts:
        raise store.ArchiveUnreadable("the archive changed after the account's days were read")
    if not read.sums:
        return
    noted = {month_of(day) for _, day in read.sums}
    places, amounts = zip(*sorted(read.sums.items()), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(sql.KEEP_SUMS, [*map(list, zip(*places, strict=True)), *map(list, zip(*amounts, strict=True))])
    ArchiveErasure.objects.bulk_create(
        [ArchiveErasure(month_id=month, user_number=user_id, erased_at=now) for month in sorted(noted)]
    )


def remove_erased() -> int:
    """Write the files anew that have days of erased accounts; how many. Safe to repeat and to interrupt.

    Does nothing while another run writes the archive. Raises `store.ArchiveUnreadable`.
    """
    with alone() as is_alone:
        if not is_alone:
            return 0
        nwritten = 0
        erased: dict[dt.date, set[int]] = defaultdict(set)
        for month, number in ArchiveErasure.objects.values_list("month", "user_number"):
            erased[month].add(number)
        for month, numbers in sorted(erased.items()):
            for part in ArchivePart.objects.filter(month=month).order_by("first_user"):
                gone = {number for number in numbers if part.first_user <= number <= part.last_user}
                if gone:
                    _without(part, gone)
                    nwritten += 1
        # Also if there is nobody to remove: when an earlier run did, its storage may have kept the old files.
        remove_strays()
    if nwritten:
        log.info("erased_accounts_removed_from_the_archive", files=nwritten)
    return nwritten


def _without(part: ArchivePart, gone: set[int]) -> None:
    rows = [
        (row.user_id, row.day, row.project_id, row.host_id, *row.amounts, row.flags)
        for row in read_part(part, None)
        if row.user_id not in gone
    ]
    new = write_part(part.month_id, rows) if rows else None
    with transaction.atomic():
        # It first, so that a volunteer's number is in one file at a time.
        part.delete()
        if new is not None:
            new.save()
        ArchivedMonth.objects.filter(pk=part.month_id).update(rows=F("rows") - (part.rows - len(rows)))
        ArchiveErasure.objects.filter(month=part.month_id, user_number__in=gone).delete()
    store.remove(part.name)
