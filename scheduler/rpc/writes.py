"""The write of a scheduler request, in one statement: jobs that are sent, (host, version) records, the computer.

The order of locks is in `scheduler.rpc.store`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
from django.conf import settings

from credit.engine.facts import HostVersionFacts
from portal.clients.wants import Query, Row, Step
from scheduler.engine.facts import Choice, Job, RecordKey
from scheduler.engine.ties import Separation
from scheduler.rpc import sql as rpc_sql
from scheduler.rpc.store import JobsOfDay, KnownHost


@dataclass(slots=True)
class Changes:
    """A request's changes besides reported results; lists of rows as in the statement's JSON.

    Of the (host, version) records: ``begun`` those with the first job of a spell of probation, or their first quota,
    ``judged`` those that reports changed, ``added`` new ones. ``record``: what the scheduler knows of the computer;
    ``is_first``: nothing until now.
    """

    jobs: list[dict[str, Any]] = field(default_factory=list)
    begun: list[dict[str, Any]] = field(default_factory=list)
    judged: list[dict[str, Any]] = field(default_factory=list)
    added: list[dict[str, Any]] = field(default_factory=list)
    trickles: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)
    is_first: bool = False
    description: dict[str, Any] | None = None


class Outdated(Exception):
    """The read data or the ready jobs are outdated, or the computer must be locked first. Nothing was written."""


class Written(NamedTuple):
    """The names of the jobs that were sent, by their ids, and whether all trickle-up messages were taken."""

    sent: dict[int, str]
    has_all_trickles: bool


@dataclass(slots=True, eq=False)
class WriteQuery(Query["Written | None"]):
    """The write of one request: the rows of each part of the statement (`scheduler.rpc.sql.write`).

    ``owner_id``: whose computer it is. ``version``: of the computer's row as it was read; None: the computer is locked.
    ``ready_jobs``: those of its jobs that nobody has locked yet.
    """

    host_id: int
    owner_id: int
    version: str | None
    rows: dict[str, list[dict[str, Any]]]
    ready_jobs: Sequence[int]
    is_write = True

    @property
    def kind(self) -> tuple[str, ...]:
        return "write", *self.rows

    @property
    def owner(self) -> int:
        """Requests of one owner are written separately: a statement does not see which copies it sends itself."""
        return self.owner_id

    @property
    def is_slow(self) -> bool:
        """Whether it may have to wait for rows that others have locked, though it has the computer and the jobs."""
        return not _NEVER_WAITS.issuperset(self.rows)

    @staticmethod
    def steps(several: Sequence[WriteQuery], *, apart: bool) -> list[Step]:
        """Write all of these, ordered by computer, but for those whose computer or jobs are locked or gone."""
        by_host = sorted(several, key=lambda writing: writing.host_id)
        is_locked = several[0].version is None
        only_locked = not is_locked or any(each.ready_jobs for each in several)
        rows = {part: [row for each in by_host for row in each.rows[part]] for part in several[0].rows}
        write = Step(
            rpc_sql.write(*rows, only_locked=only_locked),
            {part: orjson.dumps(its).decode() for part, its in rows.items()},
        )
        if not only_locked:
            return [write]
        requests = [{"host_id": each.host_id, "version": each.version, "jobs": each.ready_jobs} for each in by_host]
        reserve = rpc_sql.RESERVE if is_locked else rpc_sql.RESERVE_UNCHANGED
        # A separate statement takes the locks, so that the next one sees nothing older than the locks.
        return [Step(reserve, {"requests": orjson.dumps(requests).decode()}), write]

    @staticmethod
    def results(several: Sequence[WriteQuery], rows: Sequence[Row]) -> list[Written | None]:
        """What was written for each; None if nothing was, as what was read or is ready is outdated."""
        [(sent, locked, dropped)] = rows
        names = {int(id_): name for id_, name in orjson.loads(sent or "{}").items()}
        return [
            Written(
                {job["id"]: names[job["id"]] for job in each.rows.get("sent", ()) if job["id"] in names},
                each.host_id not in dropped,
            )
            if locked is None or each.host_id in locked
            else None
            for each in several
        ]


_NEVER_WAITS: Final = frozenset({"sent", "record", "host"})


async def write(
    host: KnownHost, user_id: int, changes: Changes, ready_jobs: Sequence[int], now: dt.datetime, *, is_locked: bool
) -> Written:
    """Store them.

    ``ready_jobs``: those of them that are not locked yet. If the computer is not locked yet, it is locked, and all is
    written in a transaction that may be shared with other requests. Raises Outdated if one of the jobs cannot be had
    or, for a computer that was not locked, if another request has it or its row was written since it was read.
    """
    version = None if is_locked else host.version
    rows = _rows(host.id, user_id, changes, now.isoformat())
    written = await WriteQuery(host.id, user_id, version, rows, ready_jobs)
    if written is None:
        raise Outdated
    return written


def _rows(host_id: int, user_id: int, changes: Changes, now: str) -> dict[str, list[dict[str, Any]]]:
    """The parts of the statement that have something to do, and their rows."""
    whose = {"host_id": host_id, "user_id": user_id}
    rows = {
        "sent": [job | whose | {"sent_at": now} for job in changes.jobs],
        "begun": [record | whose for record in changes.begun],
        "judged": [record | whose for record in changes.judged],
        "added": [record | whose for record in changes.added],
        "weighed": [trickle | whose | {"received_at": now} for trickle in changes.trickles],
        "first_record" if changes.is_first else "record": [changes.record | whose | {"last_rpc_at": now}],
    }
    if changes.description is None:
        rows["host"] = [{"host_id": host_id, "now": now}]
    else:
        rows["described_host"] = [{"host_id": host_id, "now": now, "description": changes.description}]
    found = {part: its for part, its in rows.items() if its}
    if any(job["must_replicate"] for job in changes.jobs):
        found["replicated"] = []
    if changes.trickles:
        found["trickles"] = []
    return found


def job_row(
    job: Job,
    choice: Choice,
    p_fpops: float,
    deadline_at: dt.datetime,
    ties: Sequence[int],
    *,
    one_per_user: bool,
    must_replicate: bool,
) -> dict[str, Any]:
    return {
        "id": job.id,
        "workunit_id": job.workunit_id,
        "app_version_id": choice.key.version_id or None,
        "processor_type": choice.processor_type,
        "peak_flops": choice.usage.peak_flops if choice.usage.is_peak_known else None,
        "p_fpops": p_fpops,
        "projected_flops": choice.flops,
        # Of its own programs a client says itself what they use: few GPUs must not hide many processors.
        "ninstances": choice.instances if choice.version is not None else max(choice.usage.gpus, choice.usage.ncpus),
        "deadline_at": deadline_at.isoformat(),
        "one_per_user": one_per_user,
        "must_replicate": must_replicate,
        # Whose account it is stands in a column of its own.
        "ties": [tie for tie in ties if tie < 0],
        "is_strict": settings.SEPARATE_REPLICAS == Separation.STRICT,
    }


def record_row(key: RecordKey, record: HostVersionFacts, id_: int | None, inherits: int = 0) -> dict[str, Any]:
    """The scheduler's own columns of a (host, version) record.

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
