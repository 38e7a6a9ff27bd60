"""The write of a scheduler request, in one statement: jobs to send, (host, version) records, the computer.

The order of locks is in `scheduler.rpc.store`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from django.conf import settings

from credit.engine.facts import HostVersionFacts
from portal.clients.database.json_rows import decode
from portal.clients.effects import Params, Query, Row, Step, Then, fetch
from scheduler.engine.choice.ties import Separation
from scheduler.engine.facts import Choice, Job, RecordKey
from scheduler.engine.lanes import Binding
from scheduler.engine.trickle_downs import TrickleDownPlan
from scheduler.rpc import sql as rpc_sql
from scheduler.rpc.rows import WRITTEN, WrittenRow
from scheduler.rpc.store import JobsOfDay, KnownHost

Rows = dict[str, list[dict[str, Any]]]
"""The rows that a request writes, by the statement's parts (`write.sql`), some of which have no rows of their own."""


@dataclass(slots=True)
class RecordChanges:
    """Rows of (host, version) records: ``begun`` those with the first job of a spell of probation, or their first
    quota; ``judged`` those that reports changed; ``added`` new ones.
    """

    begun: list[dict[str, Any]] = field(default_factory=list)
    judged: list[dict[str, Any]] = field(default_factory=list)
    added: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HostChanges:
    """The new state of the computer's record; ``is_first``: it had none. ``description``: if it is new."""

    record: dict[str, Any]
    is_first: bool
    description: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Changes:
    """A request's changes besides reported results; lists of rows as in the statement's JSON."""

    jobs: list[dict[str, Any]]
    records: RecordChanges
    trickles: list[dict[str, Any]]
    host: HostChanges
    message_plan: TrickleDownPlan = field(default_factory=TrickleDownPlan)


@dataclass(slots=True, eq=False)
class WriteQuery(Query["WrittenRow | None"]):
    """The write of a request whose computer and jobs nobody has locked yet. None, and nothing is written, if another
    request has the computer or one of the jobs, or has written them since they were read.

    ``owner_id``: the computer's owner. ``version``: of its row as it was read. ``rows``: those of each part of the
    statement (`scheduler.rpc.sql.write`). ``ready_jobs``: the jobs among them.
    """

    host_id: int
    owner_id: int
    version: str
    rows: Rows
    ready_jobs: Sequence[int]
    is_write = True

    @property
    def kind(self) -> tuple[str, ...]:
        return "write", *self.rows

    @property
    def owner(self) -> int:
        """Return the owner: their requests are written separately, because a statement does not see the copies that it
        sends itself.
        """
        return self.owner_id

    @property
    def is_slow(self) -> bool:
        """Whether it may have to wait for rows that others have locked, though it has the computer and the jobs."""
        return not _NEVER_WAITS.issuperset(self.rows)

    @staticmethod
    def steps(several: Sequence[WriteQuery], *, alone: bool) -> list[Step | Then]:
        """Lock, ordered by computer; then write those that are locked, by a statement that sees nothing older."""
        by_host = sorted(several, key=lambda query: query.host_id)
        requests = [{"host_id": query.host_id, "version": query.version, "jobs": query.ready_jobs} for query in by_host]

        def of_locked(locked: Sequence[Row]) -> Params:
            host_ids = {host_id for (host_id,) in locked}
            return _params([query.rows for query in by_host if query.host_id in host_ids], several[0].rows)

        reserve = Step(rpc_sql.RESERVE, {"requests": orjson.dumps(requests).decode()})
        return [reserve, Then(rpc_sql.write(*several[0].rows), of_locked)]

    @staticmethod
    def results(several: Sequence[WriteQuery], rows: Sequence[Row]) -> list[WrittenRow | None]:
        written = {row.host_id: row for row in decode(WRITTEN, rows)}
        return [written.get(query.host_id) for query in several]


_NEVER_WAITS: Final = frozenset({"sent", "record", "host"})


async def write(
    host: KnownHost, user_id: int, changes: Changes, ready_jobs: Sequence[int], now: dt.datetime
) -> WrittenRow | None:
    """Store the changes, together with those of other requests, if nobody has locked the computer or these jobs, and
    the computer is unchanged since it was read; else return None.
    """
    rows = _rows(host.id, user_id, changes, now.isoformat())
    return await WriteQuery(host.id, user_id, host.version, rows, ready_jobs)


async def write_locked(host: KnownHost, user_id: int, changes: Changes, now: dt.datetime) -> WrittenRow:
    """Store the changes, within the transaction that has locked the computer and the jobs."""
    rows = _rows(host.id, user_id, changes, now.isoformat())
    [row] = decode(WRITTEN, await fetch(Step(rpc_sql.write(*rows), _params([rows], rows))))
    return row


async def reserve(job_ids: Sequence[int]) -> bool:
    """Lock these jobs, if nobody else has locked one of them and all of them wait."""
    rows = await fetch(Step(rpc_sql.RESERVE_JOBS, {"jobs": f"{{{','.join(map(str, job_ids))}}}"}))
    return len(rows) == len(job_ids)


def _params(several: Sequence[Rows], parts: Iterable[str]) -> Params:
    """Return the lists of the statement's parts, for all these requests."""
    return {part: orjson.dumps([row for rows in several for row in rows[part]]).decode() for part in parts}


def _rows(host_id: int, user_id: int, changes: Changes, now: str) -> Rows:
    """Return the parts of the statement that have something to do, and their rows."""
    whose = {"host_id": host_id, "user_id": user_id}
    rows = {
        "sent": [job | whose | {"sent_at": now} for job in changes.jobs],
        "begun": [record | whose for record in changes.records.begun],
        "judged": [record | whose for record in changes.records.judged],
        "added": [record | whose for record in changes.records.added],
        "trickles": [trickle | whose | {"received_at": now} for trickle in changes.trickles],
        "extended": [
            {"host_id": host_id, "result_id": result_id, "deadline_at": _iso(deadline_at + settings.REPORT_GRACE_SECS)}
            for result_id, deadline_at in changes.message_plan.deadlines.items()
        ],
        "told": [
            {
                "host_id": host_id,
                "id": message.id,
                "deadline_at": _iso(changes.message_plan.deadlines[message.result_id]),
            }
            for message in changes.message_plan.first_told
        ],
        "acknowledged": [{"host_id": host_id, "id": id_, "now": now} for id_ in changes.message_plan.acknowledged],
        "record": [changes.host.record | whose | {"last_rpc_at": now}],
        "host": [{"host_id": host_id, "now": now, "description": changes.host.description}],
    }
    needed = {part: part_rows for part, part_rows in rows.items() if part_rows}
    if any(job["must_replicate"] for job in changes.jobs):
        needed["replicated"] = []
    if any(job["bound_lane"] is not None for job in changes.jobs):
        needed["bound"] = []
    if changes.host.is_first:
        needed["first_record"] = []
    if changes.host.description is not None:
        needed["described"] = []
    return needed


def _iso(secs: float) -> str:
    return dt.datetime.fromtimestamp(secs, dt.UTC).isoformat()


def job_row(
    job: Job,
    choice: Choice,
    p_fpops: float,
    deadline_at: dt.datetime,
    ties: Sequence[int],
    *,
    one_per_user: bool,
    must_replicate: bool,
    binding: Binding | None = None,
) -> dict[str, Any]:
    return {
        "id": job.id,
        "workunit_id": job.workunit_id,
        "app_version_id": choice.key.version_id or None,
        "processor_type": choice.processor_type,
        "peak_flops": choice.usage.peak_flops if choice.usage.is_peak_known else None,
        "p_fpops": p_fpops,
        "projected_flops": choice.flops,
        # A client declares what its own programs use: few GPUs must not hide many processors.
        "ninstances": choice.instances if choice.version is not None else max(choice.usage.gpus, choice.usage.ncpus),
        "deadline_at": deadline_at.isoformat(),
        "one_per_user": one_per_user,
        "must_replicate": must_replicate,
        # The account has its own column.
        "ties": [tie for tie in ties if tie < 0],
        "is_strict": settings.SEPARATE_REPLICAS == Separation.STRICT,
        "hr_class": binding.hr_class if binding else None,
        "bound_version_id": (binding.version_id or None) if binding else None,
        "bound_lane": binding.lane if binding else None,
    }


def record_row(key: RecordKey, record: HostVersionFacts, id_: int | None, inherits: int = 0) -> dict[str, Any]:
    """Return the scheduler's own columns of a (host, version) record.

    A new one (``id_`` None) gets the statistics of the version ``inherits``.
    """
    since = record.host_scale_time
    return {
        "id": id_,
        "app_id": key.app_id,
        "app_version_id": key.version_id or None,
        "processor_type": key.processor_type,
        "inherits": inherits or None,
        "scale_probation": record.scale_probation,
        "host_scale_at": None if since is None else dt.datetime.fromtimestamp(since, dt.UTC).isoformat(),
        "error_rate": record.error_rate,
        "consecutive_valid": record.consecutive_valid,
        "max_jobs_per_day": record.max_jobs_per_day,
        "failing_share": record.failing_share,
    }


def jobs_of_day_columns(jobs: JobsOfDay) -> dict[str, Any]:
    return {
        "jobs_day": jobs.day.isoformat() if jobs.day else None,
        "jobs_of_day": [
            [*key, njobs, jobs.undone[key]] if key in jobs.undone else [*key, njobs]
            for key, njobs in jobs.counts.items()
        ],
    }
