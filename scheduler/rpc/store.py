"""The scheduler's statements: lock the computer, read, take reports, pick jobs. Each runs once per RPC at most, and so
does the one that writes (`scheduler.rpc.write`).

Locks are taken in this order, by every part of the project server: computer, workunits by id, results, (host, version)
records, sums of credit. Jobs are picked with SKIP LOCKED, result and workunit together, so schedulers never wait for
one another there; what is picked and not sent is free again at the end.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import HostVersionFacts
from portal.clients.wants import Query, Row, Step, Steps, fetch
from scheduler.engine.facts import Ask, Job, JobDetails, RecordKey, Records
from scheduler.rpc import sql as rpc_sql


@dataclass(slots=True)
class Credit:
    """Credit granted in sum, and lately (a day) as of a time."""

    total: float = 0.0
    expavg: float = 0.0
    expavg_at: float | None = None


@dataclass(slots=True)
class KnownHost:
    """The computer's record; ``rpc_seqno`` None: it never asked the scheduler. ``version``: of its row."""

    id: int
    created_at: float
    venue: str
    rpc_seqno: int | None
    hardware_digest: str
    credit: Credit
    version: str


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
    """How many jobs of each (host, version) record the computer was sent on a (UTC) day; None: never any."""

    day: dt.date | None = None
    counts: dict[RecordKey, int] = field(default_factory=dict)


@dataclass(slots=True)
class Account:
    """All that was read for one request; ``host`` None: the client's number is none of this person's computers.

    ``preferences_at``: when the newest general preferences were saved that one of this person's clients sent, 0 if none
    did; ``preferences``: these, if they are newer than the client's own, else empty.
    """

    user_id: int
    user_name: str
    email: str
    cross_project_id: str
    created_at: float
    key_id: int
    key_used_at: float | None
    credit: Credit
    host: KnownHost | None
    results: dict[str, KnownResult] = field(default_factory=dict)
    records: StoredRecords = field(default_factory=lambda: StoredRecords({}, {}))
    jobs_of_day: JobsOfDay = field(default_factory=JobsOfDay)
    preferences_at: float = 0.0
    preferences: str = ""


FEW_NAMES: Final = 200
"""Results that a request reports or names: more are read by themselves."""


class ReadRow(NamedTuple):
    """What was read for one request; JSON as its text, times in Unix seconds. ``number``: its place in the batch."""

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
    host_version: str | None
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
        )


@dataclass(slots=True, eq=False)
class Reading(Query):
    """What one request reads; ``asker``: its row of the statement's list. Locks nothing."""

    asker: Mapping[str, Any]
    is_write = False

    @property
    def kind(self) -> tuple[str, ...]:
        return "read", *self.asker

    @property
    def is_slow(self) -> bool:
        return len(self.asker["names"]) > FEW_NAMES

    @staticmethod
    def steps(several: Sequence[Reading], *, apart: bool) -> list[Step]:
        statement = rpc_sql.READ_BY_KEY if "key_hash" in several[0].asker else rpc_sql.READ_BY_WEAK_KEY
        askers = [{"n": number, **reading.asker} for number, reading in enumerate(several)]
        return [Step(statement, {"askers": orjson.dumps(askers).decode()})]

    @staticmethod
    def found(several: Sequence[Reading], rows: Sequence[Row]) -> list[ReadRow | None]:
        """The row of each; None for a key that is not valid."""
        by_number = {row.number: row for row in map(ReadRow._make, rows)}
        return [by_number.get(number) for number in range(len(several))]


def read(
    key: Mapping[str, str],
    host_id: int,
    names: Iterable[str],
    reported: Sequence[str],
    preferences_at: float,
    *,
    locks: bool,
) -> Steps[Account | None]:
    """Read what the key's account has to do with the request; None if the key is not valid.

    With ``locks`` the computer is locked before, so that no other request of it is answered until the transaction ends.

    ``key``: {"key_hash"} or, in its weak form, {"weak_user", "weak_digest", "pepper"} (`portal.wire.credentials`).
    """
    reading = Reading(
        {
            **key,
            "host_id": host_id,
            "names": [*reported, *names],
            "reported": reported,
            "preferences_at": preferences_at,
        }
    )
    row: ReadRow | None
    if locks and host_id:
        # A statement of its own: the other one sees what the request that held the lock has written.
        lock = Step(rpc_sql.LOCK, {"host_id": str(host_id)})
        rows = yield from fetch(lock, *Reading.steps([reading], apart=True))
        (row,) = Reading.found([reading], rows)
    else:
        row = yield reading
    return None if row is None else _account(row)


def _account(row: ReadRow) -> Account:
    account = Account(
        user_id=row.user_id,
        user_name=row.user_name or row.email.split("@")[0],
        email=row.email,
        cross_project_id=row.cross_project_id,
        created_at=row.user_created_at,
        key_id=row.key_id,
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
    rows = orjson.loads(counts or "[]")
    return JobsOfDay(day, {RecordKey(*key): njobs for *key, njobs in rows})


def _records(text: str | None, jobs: JobsOfDay) -> StoredRecords:
    records: Records = {}
    ids: dict[RecordKey, int] = {}
    for id_, app_id, version_id, type_, et_n, et_avg, *rest in orjson.loads(text or "[]"):
        probation, scale_at, error_rate, valid, quota = rest
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
        )
    return StoredRecords(records, ids)


def report(
    host_id: int, rows: Sequence[Mapping[str, Any]], jobs: JobsOfDay, now: dt.datetime
) -> Steps[tuple[set[int], StoredRecords]]:
    """Store what became of results, and wake their workunits; the ids of those that were still open or late, and the
    computer's records, locked, if there were any.

    The others were reported before, by a request that was answered while this one was on its way.
    """
    values = {"rows": orjson.dumps(rows).decode(), "host_id": str(host_id), "now": now.isoformat()}
    [(counted, records)] = yield from fetch(Step(rpc_sql.REPORT, values))
    return set(counted), _records(records, jobs)


def _asks(asks: Sequence[Ask]) -> str:
    return orjson.dumps(asks).decode()


def pick(user_id: int, asks: Sequence[Ask]) -> Steps[tuple[list[Job], dict[int, tuple[int, int]]]]:
    """Lock jobs at the heads of the apps' queues, and where these begin now, by app; jobs are in the queue's order."""
    # As texts: of numbers the driver would make another statement for each size.
    values = {"user_id": str(user_id)} | {
        f"{name}_{number}": str(getattr(ask, name)) for number, ask in enumerate(asks) for name in rpc_sql.ASK
    }
    [(picked,)] = yield from fetch(Step(rpc_sql.pick(len(asks)), values))
    jobs: list[Job] = []
    heads: dict[int, tuple[int, int]] = {}
    for *facts, rank, begin_id in orjson.loads(picked or "[]"):
        jobs.append(_job(facts))
        heads[jobs[-1].app_id] = rank, begin_id
    return jobs, heads


def _job(facts: Sequence[Any]) -> Job:
    return Job(*[*facts[:10], JobDetails(*facts[10:])])


class Waiting(NamedTuple):
    """How many jobs wait, of those that are looked at, and how many need more memory, disk or time than there is."""

    njobs: int
    memory: int
    disk: int
    deadline: int


def pick_elsewhere(
    user_id: int, short: Sequence[Ask], asks: Sequence[Ask], found: Sequence[Job]
) -> Steps[tuple[list[Job], Waiting]]:
    """Lock jobs from elsewhere in the queues whose heads have too little, and why that may be, of all ``asks``."""
    values = {
        "user_id": str(user_id),
        "short": _asks(short),
        "apps": _asks(asks),
        "found": f"{{{','.join(str(job.id) for job in found)}}}",
    }
    [(picked, waiting)] = yield from fetch(Step(rpc_sql.PICK_ELSEWHERE, values))
    return [_job(facts) for facts in orjson.loads(picked or "[]")], Waiting(*waiting)


@dataclass(slots=True, eq=False)
class Diagnosis(Query):
    """Why nothing that was picked suits. It looks at so many jobs that others are not to wait for it."""

    asks: Sequence[Ask]
    is_write = False

    @property
    def kind(self) -> str:
        return "diagnose"

    @property
    def is_slow(self) -> bool:
        return True

    @staticmethod
    def steps(several: Sequence[Diagnosis], *, apart: bool) -> list[Step]:
        (diagnosis,) = several
        return [Step(rpc_sql.DIAGNOSE, {"apps": _asks(diagnosis.asks)})]

    @staticmethod
    def found(several: Sequence[Diagnosis], rows: Sequence[Row]) -> list[Waiting]:
        [(waiting,)] = rows
        return [Waiting(*waiting)]
