"""What a scheduler request reads, and the reports that it takes. `scheduler.rpc.writes` has the rest that it writes.

Each statement runs once per request at most. Those that pick jobs are in `scheduler.rpc.queue`.

Locks are taken in this order, by every part of the project server: computer, workunits by id, results, (host, version)
records, sums of credit.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from credit.engine import probation
from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import HostVersionFacts
from portal.clients.wants import Query, Row, Step, fetch
from scheduler.engine.copies import Repeats
from scheduler.engine.facts import Job, JobDetails, RecordKey, Records
from scheduler.rpc import sql as rpc_sql


@dataclass(slots=True)
class Credit:
    """Credit granted: the total, and the recent average per day as of a time."""

    total: float = 0.0
    expavg: float = 0.0
    expavg_at: float | None = None


@dataclass(slots=True)
class KnownHost:
    """The computer's record; ``rpc_seqno`` None: it never asked the scheduler. ``version``: of its row.

    ``cpids``, ``named_jobs_until``, ``repeats`` and ``work_asked_at`` are those of
    `scheduler.models.HostRecord`; 0.0: not known.
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


@dataclass(slots=True)
class UploadRow:
    """An output that is here (`outputs.Uploaded`)."""

    name: str
    path: str
    nbytes: int
    md5: str
    is_complete: bool = True


@dataclass(slots=True)
class KnownResult:
    """A result that the computer has, reports, or names. Times in Unix seconds.

    ``is_decided``: its workunit has its canonical result, or ended otherwise. ``output_files`` and ``uploads`` are
    read for reported ones only, and ``job``, to send it again, only for those that the client does not name.
    """

    id: int
    name: str
    host_id: int | None
    workunit_id: int
    app_id: int
    version_id: int | None
    processor_type: str
    server_state: int
    outcome: int
    sent_at: float | None
    deadline_at: float | None
    projected_flops: float | None
    peak_flops: float | None
    error_mask: int
    is_decided: bool
    delay_bound_secs: int
    job: Job | None
    output_files: list[dict[str, Any]]
    uploads: list[UploadRow]

    @property
    def key(self) -> RecordKey:
        return RecordKey(self.app_id, self.version_id or 0, self.processor_type)


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


@dataclass(slots=True)
class Account:
    """All data read for one request; ``host`` None: the client's number belongs to no computer of this person.

    ``preferences_at``: when the newest general preferences were saved that one of this person's clients sent, 0 if none
    did; ``preferences``: these, if they are newer than the client's own, else empty.
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
    results: dict[str, KnownResult] = field(default_factory=dict)
    records: StoredRecords = field(default_factory=lambda: StoredRecords({}, {}))
    jobs_of_day: JobsOfDay = field(default_factory=JobsOfDay)
    preferences_at: float = 0.0
    preferences: str = ""

    @property
    def email_hash(self) -> str:
        """The account's address in the form that clients use."""
        return hashlib.md5(self.email.lower().encode(), usedforsecurity=False).hexdigest()


FEW_NAMES: Final = 200
"""The most results that a request may report or name; one with more is read separately."""


class ReadRow(NamedTuple):
    """The row read for one request; JSON as its text, times in Unix seconds. ``number``: its place in the batch."""

    user_id: int
    user_name: str
    email: str
    cross_project_id: str
    user_created_at: float
    key_id: int
    key_used_at: float | None
    user_credit: float | None
    user_expavg: float | None
    user_expavg_at: float | None
    host_id: int | None
    host_created_at: float | None
    venue: str | None
    rpc_seqno: int | None
    hardware_digest: str | None
    host_credit: float | None
    host_expavg: float | None
    host_expavg_at: float | None
    results: str | None
    records: str | None
    preferences_at: float | None
    preferences: str | None
    jobs_day: dt.date | None
    jobs_of_day: str | None
    cpids: str | None
    named_jobs_until: float | None
    repeated_seqno: int | None
    repeated_times: int | None
    work_asked_at: float | None
    host_version: str | None
    key_created_at: float
    number: int

    def host(self) -> KnownHost | None:
        if self.host_id is None:
            return None
        return KnownHost(
            self.host_id,
            self.host_created_at or 0.0,
            self.venue or "",
            self.rpc_seqno,
            self.hardware_digest or "",
            Credit(self.host_credit or 0.0, self.host_expavg or 0.0, self.host_expavg_at),
            self.host_version or "",
            orjson.loads(self.cpids or "[]"),
            self.named_jobs_until or 0.0,
            Repeats(self.repeated_seqno, self.repeated_times or 0),
            self.work_asked_at or 0.0,
        )


@dataclass(slots=True, eq=False)
class ReadQuery(Query["ReadRow | None"]):
    """The read of one request; ``asker``: its row of the statement's list. Locks nothing."""

    asker: Mapping[str, Any]
    is_write = False

    @property
    def kind(self) -> tuple[str, ...]:
        return "read", *self.asker

    @property
    def is_slow(self) -> bool:
        return len(self.asker["names"]) > FEW_NAMES

    @staticmethod
    def steps(several: Sequence[ReadQuery], *, apart: bool) -> list[Step]:
        statement = rpc_sql.READ_BY_KEY if "key_hash" in several[0].asker else rpc_sql.READ_BY_WEAK_KEY
        askers = [{"n": number, **reading.asker} for number, reading in enumerate(several)]
        return [Step(statement, {"askers": orjson.dumps(askers).decode()})]

    @staticmethod
    def results(several: Sequence[ReadQuery], rows: Sequence[Row]) -> list[ReadRow | None]:
        """The row of each; None for a key that is not valid."""
        by_number = {row.number: row for row in map(ReadRow._make, rows)}
        return [by_number.get(number) for number in range(len(several))]


async def read(
    key: Mapping[str, str],
    host_id: int,
    names: Iterable[str],
    reported: Sequence[str],
    preferences_at: float,
    *,
    locks: bool,
) -> Account | None:
    """Read the data of the key's account for the request; None if the key is not valid.

    With ``locks`` the computer is locked before, so that no other request of it is answered until the transaction ends.

    ``key``: {"key_hash"} or, in its weak form, {"weak_user", "weak_digest", "pepper"} (`portal.wire.credentials`).
    """
    reading = ReadQuery(
        {
            **key,
            "host_id": host_id,
            "names": [*reported, *names],
            "reported": reported,
            "preferences_at": preferences_at,
        }
    )
    if locks and host_id:
        # A separate statement, so that the next one sees the writes of the previous holder of the lock.
        lock = Step(rpc_sql.LOCK, {"host_id": str(host_id)})
        rows = await fetch(lock, *ReadQuery.steps([reading], apart=True))
        (row,) = ReadQuery.results([reading], rows)
    else:
        row = await reading
    return None if row is None else _account(row)


def _account(row: ReadRow) -> Account:
    account = Account(
        user_id=row.user_id,
        user_name=row.user_name or row.email.split("@")[0],
        email=row.email,
        cross_project_id=row.cross_project_id,
        created_at=row.user_created_at,
        key_id=row.key_id,
        key_created_at=row.key_created_at,
        key_used_at=row.key_used_at,
        credit=Credit(row.user_credit or 0.0, row.user_expavg or 0.0, row.user_expavg_at),
        host=row.host(),
    )
    for *values, details, files, uploads in orjson.loads(row.results or "[]"):
        uploaded = [UploadRow(*upload) for upload in uploads or ()]
        job = _job_again(values, details) if details else None
        known = KnownResult(*[*values, job, files or [], uploaded])
        account.results[known.name] = known
    account.jobs_of_day = _jobs_of_day(row.jobs_day, row.jobs_of_day)
    account.records = _records(row.records, account.jobs_of_day)
    account.preferences_at, account.preferences = row.preferences_at or 0.0, row.preferences or ""
    return account


def _job_again(values: Sequence[Any], details: Sequence[Any]) -> Job:
    id_, name, _, workunit_id, app_id = values[:5]
    fpops_est, fpops_bound, memory, disk, quorum = details[4:]
    rest = JobDetails(*details[:4])
    return Job(id_, workunit_id, app_id, name, fpops_est, fpops_bound, memory, disk, values[15], quorum, rest)


def _jobs_of_day(day: dt.date | None, counts: str | None) -> JobsOfDay:
    if day is None:
        return JobsOfDay()
    rows = [(RecordKey(*row[:3]), *row[3:]) for row in orjson.loads(counts or "[]")]
    undone = {key: nundone[0] for key, _, *nundone in rows if nundone}
    return JobsOfDay(day, {key: njobs for key, njobs, *_ in rows}, undone)


def _records(text: str | None, jobs: JobsOfDay) -> StoredRecords:
    records: Records = {}
    ids: dict[RecordKey, int] = {}
    for id_, app_id, version_id, type_, et_n, et_avg, *rest in orjson.loads(text or "[]"):
        probation, scale_at, error_rate, valid, quota, failing_share = rest
        key = RecordKey(app_id, version_id, type_)
        ids[key] = id_
        records[key] = HostVersionFacts(
            pfc=Average(),
            et=AverageWithVariance(et_n, et_avg),
            scale_probation=probation,
            host_scale_time=scale_at,
            error_rate=error_rate,
            consecutive_valid=valid,
            max_jobs_per_day=quota,
            n_jobs_today=jobs.counts.get(key, 0),
            jobs_day=jobs.day,
            failing_share=failing_share,
        )
    return StoredRecords(records, ids)


async def report(
    host_id: int, rows: Sequence[Mapping[str, Any]], claimed: Sequence[int], jobs: JobsOfDay, now: dt.datetime
) -> tuple[set[int], StoredRecords]:
    """Store what became of results, and wake their workunits; the ids of those that were still open or late, and the
    computer's records, locked, if there were any.

    The others were reported before, by a request that was answered while this one was on its way. ``claimed``: the
    workunits of results that a restored database has forgotten.
    """
    before = [Step(rpc_sql.LOCK_WORKUNITS, {"workunits": list(claimed)})] if claimed else []
    values = {"rows": orjson.dumps(rows).decode(), "host_id": str(host_id), "now": now.isoformat()}
    [(counted, records)] = await fetch(*before, Step(rpc_sql.REPORT, values))
    return set(counted), _records(records, jobs)
