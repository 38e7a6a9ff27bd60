"""Archive months, and bring them back; one month at a time, and one run at a time. Safe to interrupt and to repeat.

A month's files are written and read again first; then one transaction notes them and drops the month's partition. A run
that is killed before leaves files that no row names, which the next run removes. Bringing a month back fills a table
first; one transaction attaches it and forgets the files, which are removed after it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, connection, transaction

from accounting.engine.amounts import KINDS, NO_WORK, Totals
from accounting.ledger.archive import check, sql, store
from accounting.ledger.archive.reads import read_part, young_from
from accounting.ledger.months import closed_until
from accounting.ledger.partitions import next_month, partition_of
from accounting.ledger.sql import WAIT_FOR_LOCK, AdvisoryLock
from accounting.models import ArchivedMonth, ArchiveErasure, ArchivePart, Settlement
from portal.databases.short_waits import in_short_waits
from portal.models import User

log = structlog.get_logger("archive")
PART_ROWS: Final = 50_000
"""Of a file, and so in memory: about a megabyte, which is what is fetched for a volunteer from a storage that sends
files whole. The rows of one volunteer are never in two files."""
_REPEATS: Final = 3


class ArchiveRefused(Exception):
    """Nothing was done; the text says why."""


class _Changed(Exception):
    """Somebody's days changed meanwhile, it seems; the text says what to tell if they do so again and again."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A month that was archived or brought back."""

    month: dt.date
    rows: int
    files: int
    size_bytes: int


@contextmanager
def alone() -> Iterator[bool]:
    """Whether no other run writes the archive; as long as this lasts, none begins.

    PostgreSQL lets others begin when the connection is lost; the next run removes what this one then leaves behind.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.TRY_ALONE, [AdvisoryLock.ARCHIVE.value])
        row = cursor.fetchone()
    is_alone = row is not None and bool(row[0])
    try:
        yield is_alone
    finally:
        if is_alone:
            _let_others()


def _let_others() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql.LET_OTHERS, [AdvisoryLock.ARCHIVE.value])
    except (InterfaceError, OperationalError) as error:
        # The lock goes with the connection, and what ended the run is not hidden by this.
        log.warning("archive_lock_lost", reason=str(error).strip())
        connection.close()


def archive_before(end: dt.date, today: dt.date) -> Iterator[Moved]:
    """Archive every month before ``end``, the oldest first. Raises ArchiveRefused and `store.ArchiveUnreadable`."""
    young = young_from(today)
    if end > young:
        raise ArchiveRefused(f"Months from {young:%Y-%m} on are too young: at most, archive those before it.")
    until = closed_until()
    if until is None or end > until:
        raise ArchiveRefused("Not all of these months are summed up yet: roll up first.")
    with _alone_or_refuse():
        remove_strays()
        with connection.cursor() as cursor:
            cursor.execute(sql.PARTITIONS_BEFORE, [partition_of(end)])
            names = [name for (name,) in cursor.fetchall()]
        for name in names:
            yield _repeated(_archive, dt.date(int(name[-7:-3]), int(name[-2:]), 1))


def restore_before(end: dt.date) -> Iterator[Moved]:
    """Bring every archived month before ``end`` back, the newest first. Raises as `archive_before`."""
    with _alone_or_refuse():
        remove_strays()
        for month in ArchivedMonth.objects.filter(month__lt=end).order_by("-month").values_list("month", flat=True):
            yield _repeated(_restore, month)


def remove_strays() -> int:
    """Remove the files that no row names; how many. Only while no other run writes the archive.

    Also tables that were not attached, as nobody who has days in one can be erased.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.LEFT)
        left = [name for (name,) in cursor.fetchall()]
    for name in left:
        # Its foreign keys need the tables that reports and logins use.
        in_short_waits(partial(_drop_left, name))
    return store.remove_strays(set(ArchivePart.objects.values_list("name", flat=True)))


def _drop_left(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.DROP_LEFT.format(new=name))


@contextmanager
def _alone_or_refuse() -> Iterator[None]:
    with alone() as is_alone:
        if not is_alone:
            raise ArchiveRefused("Another run writes the archive. Wait until it has ended.")
        yield


def _repeated(move: Callable[[dt.date], Moved], month: dt.date) -> Moved:
    said = ""
    for _ in range(_REPEATS):
        try:
            return move(month)
        except _Changed as error:
            said = str(error)
            log.info("days_changed_meanwhile", month=f"{month:%Y-%m}")
    raise ArchiveRefused(said or f"{month:%Y-%m}: its days changed {_REPEATS} times meanwhile. Run it again.")


def _archive(month: dt.date) -> Moved:
    parts: list[ArchivePart] = []
    total, users = NO_WORK, set()
    try:
        for rows in _read_parts(month):
            parts.append(write_part(month, rows))
            for row in rows:
                total = total.plus(Totals(*row[4:10]))
                users.add(row[0])
        nrows = sum(part.rows for part in parts)
        differences = list(check.month_differences(month, parts))
        if differences:
            # An account may have been erased since the days were read.
            raise _Changed(f"{differences[0]}. Nothing was archived of this month; run check_ledger.")
        in_short_waits(lambda: _take(month, parts, total, users))
    except BaseException:  # whatever it is: the files are of no use then
        _remove_unless_taken(parts)
        raise
    return Moved(month, nrows, len(parts), sum(part.size_bytes for part in parts))


def _remove_unless_taken(parts: list[ArchivePart]) -> None:
    """Remove files after a failure, but not if the connection was lost while the rows that name them were committed."""
    names = [part.name for part in parts]
    try:
        taken = set(ArchivePart.objects.filter(name__in=names).values_list("name", flat=True))
    except (DatabaseError, InterfaceError):
        # Nothing is known of the rows: the next run removes what no row names (`remove_strays`).
        return
    for name in set(names) - taken:
        store.remove(name)


def _read_parts(month: dt.date) -> Iterator[list[Any]]:
    """The rows of a month in lists for a file each, all of one moment; a volunteer's rows are in one list."""
    rows: list[Any] = []
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute(sql.READ.format(table=partition_of(month)))
        while found := cursor.fetchmany(PART_ROWS):
            for row in found:
                if len(rows) >= PART_ROWS and row[0] != rows[-1][0]:
                    yield rows
                    rows = []
                rows.append(row)
    if rows:
        yield rows


def write_part(month: dt.date, rows: list[Any]) -> ArchivePart:
    """Write a file, and read it again from the storage; its row, which is not stored yet."""
    # Only here: the library takes much memory.
    from accounting.ledger.archive.parquet import as_file

    content = as_file(rows)
    part = ArchivePart(
        month_id=month,
        first_user=rows[0][0],
        last_user=rows[-1][0],
        name=store.save(month, content),
        rows=len(rows),
        size_bytes=len(content),
        sha256=check.sha256(content),
    )
    if (fault := check.file_fault(part)) is not None:
        store.remove(part.name)
        raise store.ArchiveUnreadable(fault)
    return part


def _lock(month: dt.date) -> None:
    seen = Settlement.objects.filter(seen_on__gte=month, seen_on__lt=next_month(month))
    list(seen.select_for_update().order_by("pk").values_list("pk"))
    with connection.cursor() as cursor:
        cursor.execute(WAIT_FOR_LOCK, [AdvisoryLock.MONTHS.value])
        cursor.execute(WAIT_FOR_LOCK, [AdvisoryLock.PARTITIONS.value])


def _take(month: dt.date, parts: list[ArchivePart], total: Totals, users: set[int]) -> None:
    _lock(month)
    with connection.cursor() as cursor:
        cursor.execute(sql.SUMS, [month])
        row = cursor.fetchone()
        if row is None or tuple(map(int, row)) != tuple(total) or _number_of(users) != len(users):
            raise _Changed
        cursor.execute(sql.FOLD_SEEN_DAYS, {"sign": 1, "month": month, "next": next_month(month)})
        kept = ArchivedMonth.objects.create(month=month, rows=sum(part.rows for part in parts), archived_at=_now())
        ArchivePart.objects.bulk_create(parts)
        assert kept.pk == month
        cursor.execute(sql.DROP.format(table=partition_of(month)))


def _number_of(users: set[int]) -> int:
    return User.objects.filter(pk__in=list(users)).count()


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def _restore(month: dt.date) -> Moved:
    parts = list(ArchivePart.objects.filter(month=month).order_by("first_user"))
    for part in parts:
        if (fault := check.file_fault(part)) is not None:
            raise store.ArchiveUnreadable(fault)
    names = {
        "table": partition_of(month),
        "new": f"{partition_of(month)}_new",
        "month": month,
        "next": next_month(month),
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.DROP_LEFT.format(**names))
        cursor.execute(sql.MAKE.format(**names))
        nrows = _fill(cursor, sql.COPY_INTO.format(**names), month, parts)
        try:
            for statement in sql.PREPARE:
                cursor.execute(statement.format(**names))
        except IntegrityError as error:
            # Somebody was erased since the files were read.
            raise _Changed from error
    in_short_waits(lambda: _put_back(month, names))
    for part in parts:
        store.remove(part.name)
    return Moved(month, nrows, len(parts), sum(part.size_bytes for part in parts))


def _fill(cursor: Any, copy_into: str, month: dt.date, parts: list[ArchivePart]) -> int:
    erased = set(ArchiveErasure.objects.filter(month=month).values_list("user_number", flat=True))
    nrows = 0
    for part in parts:
        rows: dict[tuple[Any, ...], list[int]] = {}
        merged = check.merged_between(part.first_user, part.last_user)
        for row in read_part(part, None):
            if row.user_id in erased:
                continue
            place = (row.user_id, row.day, row.project_id, merged.get(row.host_id, row.host_id))
            *amounts, flags = rows.get(place, [0] * (len(KINDS) + 1))
            rows[place] = [*(a + b for a, b in zip(amounts, row.amounts, strict=True)), flags | row.flags]
        with cursor.copy(copy_into) as copy:
            for place in sorted(rows):
                copy.write_row((*place, *rows[place]))
        nrows += len(rows)
    return nrows


def _put_back(month: dt.date, names: dict[str, Any]) -> None:
    _lock(month)
    with connection.cursor() as cursor:
        cursor.execute(sql.DIFFERS.format(**names), [month])
        if cursor.fetchone() is not None:
            raise _Changed
        cursor.execute(sql.HOLD_DAYS)
        for statement in sql.ATTACH:
            cursor.execute(statement.format(**names))
        cursor.execute(sql.FOLD_SEEN_DAYS, {"sign": -1, "month": month, "next": next_month(month)})
        ArchivedMonth.objects.filter(pk=month).delete()
