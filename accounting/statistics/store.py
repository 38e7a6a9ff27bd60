"""Store an export in one transaction: all of it, or nothing if anything in it is wrong."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from psycopg import Connection

from accounting.engine.granted import ReportedCredit, StoredCredit, apply
from accounting.ledger.sql import LOCK_MONTHS
from accounting.models import StatisticsImport
from accounting.statistics import sql
from accounting.wire.statistics import (
    HOSTS,
    USERS,
    Kind,
    OddRecords,
    Record,
    Row,
    StatisticsError,
    Tables,
    checked,
)
from portal.fetch.fetcher import Version

_BATCH_ROWS: Final = 5_000
_MAX_WANTED: Final = 300_000
"""The most ids looked for in this process: about a hundred bytes each."""
MAX_ODD_CHARS: Final = 300
_TABLES: Final = {USERS: "read_users", HOSTS: "read_hosts"}

Source = Callable[[Kind, set[int] | None, OddRecords], Iterator[tuple[int, list[Record]]]]
"""The source of a kind of records: batches, with how many were read for each; of these ids, None: all."""


@dataclass(slots=True)
class Counts:
    """Records in the export, those of our volunteers, invalid ones, and the grants since the previous export, in
    micro-credits.
    """

    hosts_read: int = 0
    hosts_kept: int = 0
    users_read: int = 0
    users_kept: int = 0
    granted: int = 0
    hosts_odd: int = 0
    users_odd: int = 0


def source_of(rows: dict[Kind, Iterable[list[Row]]]) -> Source:
    """Return batches of rows that are already numbers."""

    def source(kind: Kind, ids: set[int] | None, odd: OddRecords) -> Iterator[tuple[int, list[Record]]]:
        for batch in rows[kind]:
            read = (checked(row, odd) for row in batch)
            yield len(batch), [record for record in read if record is not None and (ids is None or record[0] in ids)]

    return source


def keep(
    session: Connection[Any],
    row: StatisticsImport,
    tables: Tables,
    version: Version,
    source: Source,
) -> Counts:
    """Read the records and store those of our volunteers. Raises StatisticsError without having changed anything.

    Safe to repeat and to interrupt: an export is stored once.
    """
    counts = Counts()
    as_of = dt.datetime.fromtimestamp(tables.update_time, dt.UTC)
    params: dict[str, Any] = {
        "project": row.project_id,
        "as_of": as_of,
        "day": as_of.date(),
        "account_email": row.account_email.lower(),
        "etag": version.etag,
        "last_modified": version.last_modified,
    }
    with session.transaction():
        session.execute(sql.MAKE_TABLES)
        # A few ids among millions are searched for here; otherwise all is copied, and the database searches.
        cpids = _ids_to_find(session, sql.WANTED_USERS, params)
        odd_users, odd_hosts = OddRecords(), OddRecords()
        counts.users_read = _copy(
            session, USERS, tables, source, odd_users, cpids=cpids and {cpid.hex.encode() for cpid in cpids}
        )
        ids = _ids_to_find(session, sql.WANTED_HOSTS, params)
        counts.hosts_read = _copy(session, HOSTS, tables, source, odd_hosts, ids=ids)
        counts.users_odd, counts.hosts_odd = odd_users.count, odd_hosts.count
        params["odd_ours"] = _odd_ours(session, params, odd_hosts, odd_users)
        session.execute(sql.ANALYZE)
        _lock_ledgers(session, params)
        session.execute(LOCK_MONTHS)
        for batch in _fits(session, params):
            _write(session, row, batch, params, counts)
        counts.users_kept = session.execute(sql.WRITE_ACCOUNTS, params).rowcount
        done = session.execute(sql.DONE, params | _numbers(counts))
        if done.rowcount != 1:
            raise StatisticsError("tables.xml", "export_not_newer")
    return counts


def _lock_ledgers(session: Connection[Any], params: dict[str, Any]) -> None:
    """Lock the computers in question. If a merge that this waited for moved a record to a computer that is not locked,
    start over, as further locks would be out of order.
    """
    session.execute(sql.BEGIN_TO_LOCK)
    while True:
        locked = set(session.execute(sql.LOCK_LEDGERS, params))
        if set(session.execute(sql.LEDGERS, params)) <= locked:
            return
        session.execute(sql.RELEASE_LOCKS)


def _numbers(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in Counts.__slots__}


def _ids_to_find(session: Connection[Any], statement: str, params: dict[str, Any]) -> set[Any] | None:
    """Return the ids to look for; None if there are too many to hold in memory."""
    keys = {key for (key,) in session.execute(statement, params | {"most": _MAX_WANTED + 1})}
    return keys if len(keys) <= _MAX_WANTED else None


def _copy(
    session: Connection[Any],
    kind: Kind,
    tables: Tables,
    source: Source,
    odd: OddRecords,
    *,
    ids: set[int] | None = None,
    cpids: set[bytes] | None = None,
) -> int:
    """Copy the records, or those with these ids, into their temporary table; return how many there are at the source.

    Reads to the end, where a fault may be.
    """
    table = _TABLES[kind]
    count = 0
    with session.cursor() as cursor, cursor.copy(sql.COPY_INTO.format(table=table)) as rows:
        for nrecords, batch in source(kind, ids, odd):
            count += nrecords
            tables.check(kind, count)
            rows.write(_lines(batch if cpids is None else [row for row in batch if row[5] in cpids]))
    odd.check(kind, count, settings.STATISTICS_IMPORT_ODD_PERCENT)
    twice = session.execute(sql.DOUBLES.format(table=table)).fetchone()
    if twice is not None:
        raise StatisticsError(kind.name, "export_id_twice", id=str(twice[0]))
    return count


def _odd_ours(session: Connection[Any], params: dict[str, Any], hosts: OddRecords, users: OddRecords) -> str:
    """Return the numbers of invalid records that belonged to our volunteers so far, such as "computer 7, account
    12".
    """
    if not hosts.ids and not users.ids:
        return ""
    rows = session.execute(sql.ODD_OURS, params | {"odd_hosts": hosts.ids, "odd_users": users.ids})
    return ", ".join(f"{what} {number}" for what, number in rows)[:MAX_ODD_CHARS]


def _lines(batch: Iterable[Record]) -> bytes:
    return b"".join([b"%d\t%d\t%a\t%a\t%d\t%b\n" % (*row[:5], row[5] or b"\\N") for row in batch])


def _fits(session: Connection[Any], params: dict[str, Any]) -> Iterator[list[tuple[Any, ...]]]:
    """Return the records of our volunteers' computers, with the stored values of each. In most exports, they are
    few.
    """
    matches = session.execute(sql.MATCH_RECORDS, params).fetchall()
    for begin in range(0, len(matches), _BATCH_ROWS):
        yield matches[begin : begin + _BATCH_ROWS]


def _write(
    session: Connection[Any],
    import_row: StatisticsImport,
    batch: list[tuple[Any, ...]],
    params: dict[str, Any],
    counts: Counts,
) -> None:
    as_of = int(params["as_of"].timestamp())
    read_since = int(import_row.first_update_time.timestamp()) if import_row.first_update_time is not None else None
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "ids", "hosts", "users", "totals", "highest", "counted", "averages", "averages_at", "made_at", "grants",
        )
    }  # fmt: skip
    for id_, total, average, average_at, made_at, host, user, known_since, *before in batch:
        stored = StoredCredit(*before) if before[0] is not None else None
        new, grant = apply(
            stored, ReportedCredit(total, made_at, as_of), read_since=read_since, known_since=known_since
        )
        if new is stored:
            continue
        row = (id_, host, user, new.total, new.highest, new.counted, average, average_at, new.made_at, grant)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    session.execute(sql.WRITE_TOTALS, params | columns)
    session.execute(sql.WRITE_DAYS, params | columns)
    counts.hosts_kept += len(batch)
    counts.granted += sum(columns["grants"])
