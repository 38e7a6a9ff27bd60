"""The reads of a scheduler request, and the reports that it takes. `scheduler.rpc.writes` has the other writes.

Each statement runs at most once per request. Those that pick jobs are in `scheduler.rpc.queue`.

Locks are taken in this order, by every part of the project server: computer, workunits by id, results, (host, version)
records, sums of credit.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from credit.engine import probation
from portal.clients.database.json_rows import decode
from portal.clients.effects import Query, Row, Step, fetch
from scheduler.engine.copies import Repeats
from scheduler.engine.facts import RecordKey, Records
from scheduler.engine.project_preferences import ProjectPreferences
from scheduler.engine.trickle_downs import Message
from scheduler.rpc import sql as rpc_sql
from scheduler.rpc.rows import READ, REPORT, KnownResult, ReadRow, RecordRow


class Credit(msgspec.Struct):
    """Credit granted: the total, and the recent average per day as of a time."""

    total: float = 0.0
    expavg: float = 0.0
    expavg_at: float | None = None


class KnownHost(msgspec.Struct):
    """The computer's record; ``rpc_seqno`` None: it never contacted the scheduler. ``version``: of its row.

    ``cpids``, ``named_jobs_until``, ``repeats`` and ``work_asked_at`` are those of `scheduler.models.HostRecord`; 0.0:
    unknown.
    """

    id: int
    created_at: float
    venue: str
    rpc_seqno: int | None
    hardware_digest: str
    credit: Credit
    version: str
    cpids: list[str]
    named_jobs_until: float
    repeats: Repeats
    work_asked_at: float


class StoredRecords(NamedTuple):
    """The computer's (host, version) records, and the numbers of their rows."""

    records: Records
    ids: dict[RecordKey, int]


@dataclass(slots=True)
class JobsOfDay:
    """How many jobs of each (host, version) record count for the computer's quota of a (UTC) day; None: never any.

    ``undone``: how many ended on that day without having been computed.
    """

    day: dt.date | None = None
    counts: dict[RecordKey, int] = field(default_factory=dict)
    undone: dict[RecordKey, int] = field(default_factory=dict)

    def begin(self, today: dt.date) -> None:
        """Count for ``today``, if this is not counted already."""
        if not probation.counts_for(self.day, today):
            self.day, self.counts, self.undone = today, {}, {}


class Account(msgspec.Struct):
    """All data read for one request; ``host`` None: the client's number belongs to no computer of this person.

    ``preferences_at``: when the newest general preferences from this person's clients were saved, 0 if there are none;
    ``preferences``: these, if they are newer than the client's own, else empty. ``project_preferences``: those for the
    computer; None: nothing was ever chosen. ``unneeded_files``: the files kept by the computer that no job needs any
    more.
    """

    user_id: int
    user_name: str
    email: str
    cross_project_id: str
    created_at: float
    key_id: int
    key_created_at: float
    key_used_at: float | None
    credit: Credit
    host: KnownHost | None
    results: dict[str, KnownResult]
    records: StoredRecords
    jobs_of_day: JobsOfDay
    preferences_at: float
    preferences: str
    project_preferences: ProjectPreferences | None
    trickle_downs: list[Message]
    unneeded_files: list[str]

    @property
    def email_hash(self) -> str:
        """Return the hash of the account's address in the form that clients use."""
        return hashlib.md5(self.email.lower().encode(), usedforsecurity=False).hexdigest()


FEW_NAMES: Final = 200
"""The most results that a request may report or name; one with more is read separately."""


@dataclass(slots=True, eq=False)
class ReadQuery(Query["ReadRow | None"]):
    """The read of one request; ``asker``: its row of the statement's list. Locks nothing.

    ``trickle_downs``: whether any message to a running job waits.
    """

    asker: Mapping[str, Any]
    trickle_downs: bool
    is_write = False

    @property
    def kind(self) -> tuple[str, ...]:
        """Return the parts of the statement that are needed (`scheduler.rpc.sql.read`)."""
        listed = tuple(part for part in ("reported", "held_files") if self.asker[part])
        return (*listed, "trickle_downs") if self.trickle_downs else listed

    @property
    def is_slow(self) -> bool:
        return len(self.asker["names"]) > FEW_NAMES or len(self.asker["held_files"]) > FEW_NAMES

    @staticmethod
    def steps(several: Sequence[ReadQuery], *, alone: bool) -> list[Step]:
        askers = [{"n": number, **query.asker} for number, query in enumerate(several)]
        return [Step(rpc_sql.read(*several[0].kind), {"askers": orjson.dumps(askers).decode()})]

    @staticmethod
    def results(several: Sequence[ReadQuery], rows: Sequence[Row]) -> list[ReadRow | None]:
        """Return the row of each; None for an invalid key."""
        by_number = {row.n: row for row in decode(READ, rows)}
        return [by_number.get(number) for number in range(len(several))]


async def read(
    key: Mapping[str, str],
    host_id: int,
    names: Iterable[str],
    reported: Sequence[str],
    preferences_at: float,
    held_files: Sequence[str] = (),
    *,
    locks: bool,
    trickle_downs: bool = False,
) -> Account | None:
    """Read the data of the key's account for the request; None if the key is not valid.

    ``held_files``: names of files that the computer keeps. ``trickle_downs``: whether any message to a job waits. With
    ``locks`` the computer is locked first, so that no other request from it is answered until the transaction ends.

    ``key``: {"key_hash"} or, in its weak form, {"weak_user", "weak_digest", "pepper"} (`portal.wire.credentials`).
    """
    query = ReadQuery(
        {
            **key,
            "host_id": host_id,
            "names": [*reported, *names],
            "reported": reported,
            "preferences_at": preferences_at,
            "held_files": held_files,
        },
        trickle_downs,
    )
    if locks and host_id:
        # A separate statement, so that the next one sees the writes of the previous holder of the lock.
        lock = Step(rpc_sql.LOCK, {"host_id": str(host_id)})
        rows = await fetch(lock, *ReadQuery.steps([query], alone=True))
        (row,) = ReadQuery.results([query], rows)
    else:
        row = await query
    return None if row is None else _account(row)


def _account(row: ReadRow) -> Account:
    jobs_of_day = _jobs_of_day(row.jobs_day, row.jobs_of_day or ())
    return Account(
        user_id=row.user_id,
        user_name=row.user_name or row.email.split("@")[0],
        email=row.email,
        cross_project_id=row.cross_project_id,
        created_at=row.user_created_at,
        key_id=row.key_id,
        key_created_at=row.key_created_at,
        key_used_at=row.key_used_at,
        credit=Credit(row.user_total or 0.0, row.user_expavg or 0.0, row.user_expavg_at),
        host=None if row.host_id is None else _host(row.host_id, row),
        results={result.name: result for result in row.results or ()},
        records=_records(row.records or (), jobs_of_day),
        jobs_of_day=jobs_of_day,
        preferences_at=row.preferences_at or 0.0,
        preferences=row.preferences or "",
        project_preferences=row.project_preferences,
        trickle_downs=row.trickle_downs or [],
        unneeded_files=row.unneeded_files or [],
    )


def _host(id_: int, row: ReadRow) -> KnownHost:
    return KnownHost(
        id=id_,
        created_at=row.host_created_at or 0.0,
        venue=row.venue or "",
        rpc_seqno=row.rpc_seqno,
        hardware_digest=row.hardware_digest or "",
        credit=Credit(row.host_total or 0.0, row.host_expavg or 0.0, row.host_expavg_at),
        version=row.host_version or "",
        cpids=row.cpids or [],
        named_jobs_until=row.named_jobs_until or 0.0,
        repeats=Repeats(row.repeated_seqno, row.repeated_times or 0),
        work_asked_at=row.work_asked_at or 0.0,
    )


def _jobs_of_day(day: dt.date | None, counts: Iterable[Sequence[Any]]) -> JobsOfDay:
    if day is None:
        return JobsOfDay()
    rows = [(RecordKey(*row[:3]), *row[3:]) for row in counts]
    undone = {key: nundone[0] for key, _, *nundone in rows if nundone}
    return JobsOfDay(day, {key: njobs for key, njobs, *_ in rows}, undone)


def _records(rows: Iterable[RecordRow], jobs: JobsOfDay) -> StoredRecords:
    records = {row.key: row.facts(jobs.counts.get(row.key, 0), jobs.day) for row in rows}
    return StoredRecords(records, {row.key: row.id for row in rows})


async def report(
    host_id: int,
    rows: Sequence[Mapping[str, Any]],
    claimed: Sequence[int],
    extended: Sequence[int],
    jobs: JobsOfDay,
    now: dt.datetime,
) -> tuple[set[int], StoredRecords]:
    """Store what became of results, and wake their workunits. Return the ids of those that were still open or late, and
    the computer's records, locked, if there were any.

    The others were reported before, by a request that was answered while this one was on its way. ``claimed``: the
    workunits of results that a restored database has forgotten; ``extended``: results of the computer that are locked
    before its records, because they are written afterwards.
    """
    before = [Step(rpc_sql.LOCK_WORKUNITS, {"workunits": list(claimed)})] if claimed else []
    values = {
        "rows": orjson.dumps(rows).decode(),
        "extended": f"{{{','.join(map(str, extended))}}}",
        "host_id": str(host_id),
        "now": now.isoformat(),
    }
    [row] = decode(REPORT, await fetch(*before, Step(rpc_sql.REPORT, values)))
    return row.counted, _records(row.records or (), jobs)
