"""The scheduler's statements: lock the computer, read, take reports, pick jobs. Each runs once per RPC at most, and so
does the one that writes (`scheduler.writing`).

Locks are taken in this order, by every part of the project server: computer, workunits by id, results, (host, version)
records, sums of credit. Jobs are picked with SKIP LOCKED, result and workunit together, so schedulers never wait for
one another there; what is picked and not sent is free again at the end.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

import orjson

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import HostVersionFacts
from portal.prepared import Rows, Step, array, fetch_last
from scheduler import statements
from scheduler.engine.facts import Job, RecordKey, Records

Row = Sequence[str | None]


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


@dataclass(slots=True)
class JobDetails:
    """What of a workunit only the reply needs."""

    workunit_name: str
    command_line: str
    input_files: list[dict[str, Any]]
    output_files: list[dict[str, Any]]


FEW_NAMES: Final = 200
"""Results that a request reports or names: more are read by themselves."""


@dataclass(slots=True, eq=False)
class Reading:
    """What one request reads; ``asker``: its row of the statement's list. Locks nothing."""

    asker: Mapping[str, Any]
    owner: ClassVar[None] = None

    @property
    def kind(self) -> tuple[str, ...]:
        """Those of one kind are read by one statement."""
        return "read", *self.asker

    @property
    def may_wait(self) -> bool:
        """Whether it takes so long that others are not to wait for it."""
        return len(self.asker["names"]) > FEW_NAMES

    @staticmethod
    def steps(several: Sequence[Reading]) -> list[Step]:
        """Read all of these, which are of one kind."""
        statement = statements.READ_BY_KEY if "key_hash" in several[0].asker else statements.READ_BY_WEAK_KEY
        askers = [{"n": number, **reading.asker} for number, reading in enumerate(several)]
        return [(statement, {"askers": orjson.dumps(askers).decode()})]

    @staticmethod
    def found(several: Sequence[Reading], rows: Rows) -> list[Row | None]:
        """The row of each; None for a key that is not valid."""
        by_number = {int(row[25] or 0): row for row in rows}
        return [by_number.get(number) for number in range(len(several))]


def read(
    key: Mapping[str, str],
    host_id: int,
    names: Iterable[str],
    reported: Sequence[str],
    preferences_at: float,
    *,
    locks: bool,
) -> Generator[Reading, Row | None, Account | None]:
    """Read what the key's account has to do with the request; None if the key is not valid.

    With ``locks`` the computer is locked before, so that no other request of it is answered until the transaction ends;
    without, it is read with what others want (`scheduler.trips`).

    ``key``: {"key_hash"} or, in its weak form, {"weak_user", "weak_digest", "pepper"} (`portal.credentials`).
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
    if locks:
        # A statement of its own: the other one sees what the request that held the lock has written.
        lock = [(statements.LOCK, {"host_id": str(host_id)})] if host_id else []
        row = Reading.found([reading], fetch_last([*lock, *Reading.steps([reading])]))[0]
    else:
        row = yield reading
    return None if row is None else _account(row)


def _account(row: Row) -> Account:
    def number(at: int) -> float | None:
        text = row[at]
        return None if text is None else float(text)

    host = None
    if row[10] is not None:
        seqno = row[13]
        host = KnownHost(
            int(row[10]),
            number(11) or 0.0,
            row[12] or "",
            None if seqno is None else int(seqno),
            row[14] or "",
            Credit(number(15) or 0.0, number(16) or 0.0, number(17)),
            row[24] or "",
        )
    account = Account(
        user_id=int(row[0] or 0),
        user_name=row[1] or (row[2] or "").split("@")[0],
        email=row[2] or "",
        cross_project_id=row[3] or "",
        created_at=number(4) or 0.0,
        key_id=int(row[5] or 0),
        key_used_at=number(6),
        credit=Credit(number(7) or 0.0, number(8) or 0.0, number(9)),
        host=host,
    )
    for *values, details, files, uploads in orjson.loads(row[18] or "[]"):
        uploaded = [UploadRow(*upload) for upload in uploads or ()]
        job = _job_again(values, details) if details else None
        known = KnownResult(*[*values, job, files or [], uploaded])
        account.results[known.name] = known
    account.jobs_of_day = _jobs_of_day(row[22], row[23])
    account.records = _records(row[19], account.jobs_of_day)
    account.preferences_at, account.preferences = number(20) or 0.0, row[21] or ""
    return account


def _job_again(values: Sequence[Any], details: Sequence[Any]) -> Job:
    id_, name, _, workunit_id, app_id = values[:5]
    fpops_est, fpops_bound, memory, disk, quorum = details[4:]
    rest = JobDetails(*details[:4])
    return Job(id_, workunit_id, app_id, name, fpops_est, fpops_bound, memory, disk, values[15], quorum, rest)


def _jobs_of_day(day: str | None, counts: str | None) -> JobsOfDay:
    if day is None:
        return JobsOfDay()
    rows = orjson.loads(counts or "[]")
    return JobsOfDay(dt.date.fromisoformat(day), {RecordKey(*key): njobs for *key, njobs in rows})


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
) -> tuple[set[int], StoredRecords]:
    """Store what became of results, and wake their workunits; the ids of those that were still open or late, and the
    computer's records, locked, if there were any.

    The others were reported before, by a request that was answered while this one was on its way.
    """
    row = statements.REPORT.fetch_one(
        {"rows": orjson.dumps(rows).decode(), "host_id": str(host_id), "now": now.isoformat()}
    )
    assert row is not None  # a SELECT without FROM has one row
    return set(orjson.loads(row[0] or "[]")), _records(row[1], jobs)


@dataclass(slots=True)
class Ask:
    """What jobs of an app are looked for: at most so many, and only those that can suit.

    ``flops`` of the fastest version, with availability. ``rank`` (-priority) and ``begin_id``: from where in the queue
    on.
    """

    app_id: int
    most: int
    flops: float
    delay_secs: float
    memory_bytes: float
    disk_bytes: float
    one_per_user: bool
    rank: int
    begin_id: int


def _asks(asks: Sequence[Ask]) -> str:
    return orjson.dumps(asks).decode()


def pick(user_id: int, asks: Sequence[Ask]) -> tuple[list[Job], dict[int, tuple[int, int]]]:
    """Lock jobs at the heads of the apps' queues, and where these begin now, by app; jobs are in the queue's order."""
    values: dict[str, str | None] = {"user_id": str(user_id)}
    for number, ask in enumerate(asks):
        values |= {
            f"app_id_{number}": str(ask.app_id),
            f"most_{number}": str(ask.most),
            f"flops_{number}": repr(ask.flops),
            f"delay_secs_{number}": repr(ask.delay_secs),
            f"memory_bytes_{number}": repr(ask.memory_bytes),
            f"disk_bytes_{number}": repr(ask.disk_bytes),
            f"one_per_user_{number}": "t" if ask.one_per_user else "f",
            f"rank_{number}": str(ask.rank),
            f"begin_id_{number}": str(ask.begin_id),
        }
    row = statements.pick(len(asks)).fetch_one(values)
    found = orjson.loads(row[0] or "[]") if row else []
    return [_job(job) for job in found], {job[2]: (job[14], job[15]) for job in found}


def _job(row: Sequence[Any]) -> Job:
    return Job(*[*row[:10], JobDetails(*row[10:14])])


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many jobs wait, of those that are looked at, and how many need more memory, disk or time than there is."""

    njobs: int
    memory: int
    disk: int
    deadline: int


def pick_elsewhere(
    user_id: int, short: Sequence[Ask], asks: Sequence[Ask], found: Sequence[Job]
) -> tuple[list[Job], Waiting]:
    """Lock jobs from elsewhere in the queues whose heads have too little, and why that may be, of all ``asks``."""
    row = statements.PICK_ELSEWHERE.fetch_one(
        {
            "user_id": str(user_id),
            "short": _asks(short),
            "apps": _asks(asks),
            "found": array([job.id for job in found]),
        }
    )
    assert row is not None  # a SELECT without FROM has one row
    return [_job(job) for job in orjson.loads(row[0] or "[]")], Waiting(*orjson.loads(row[1] or "[]"))


@dataclass(slots=True, eq=False)
class Diagnosis:
    """Why nothing that was picked suits. It looks at so many jobs that others are not to wait for it."""

    asks: Sequence[Ask]
    kind: ClassVar[str] = "diagnose"
    may_wait: ClassVar[bool] = True
    owner: ClassVar[None] = None

    @staticmethod
    def steps(several: Sequence[Diagnosis]) -> list[Step]:
        """Done apart, it comes alone."""
        (diagnosis,) = several
        return [(statements.DIAGNOSE, {"apps": _asks(diagnosis.asks)})]

    @staticmethod
    def found(several: Sequence[Diagnosis], rows: Rows) -> list[Waiting]:
        return [Waiting(*orjson.loads(rows[0][0] or "[]"))]


def diagnose(asks: Sequence[Ask], *, is_locked: bool) -> Generator[Diagnosis, Waiting, Waiting]:
    """Why nothing that was picked suits; in the transaction of the computer's lock if there is one."""
    diagnosis = [Diagnosis(asks)]
    if is_locked:
        return Diagnosis.found(diagnosis, fetch_last(Diagnosis.steps(diagnosis)))[0]
    return (yield diagnosis[0])
