"""What a scheduler request changes: its rows, written with those of others that come at the same time, or by itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from credit.engine.facts import HostVersionFacts
from portal.clients.wants import Query, Row, Step, Steps
from scheduler.engine.facts import Choice, Job, RecordKey
from scheduler.rpc import sql as rpc_sql
from scheduler.rpc.store import JobsOfDay, KnownHost


@dataclass(slots=True)
class Changes:
    """What a request changes besides results that were reported; lists of rows as the statement's JSON has them.

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
    """What was read or is ready does not hold any more, or the computer's lock is needed for more: nothing is done."""


@dataclass(slots=True, eq=False)
class Writing(Query):
    """What one request writes: of each part of the statement (`statements.write`) the rows.

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
        """A statement does not see what it sends of the same workunit itself."""
        return self.owner_id

    @property
    def is_slow(self) -> bool:
        """Whether others may have rows locked that it writes, once the computer and the jobs are its own."""
        return not _NEVER_WAITS.issuperset(self.rows)

    @staticmethod
    def steps(several: Sequence[Writing], *, apart: bool) -> list[Step]:
        """Write all of these, by computer, but for those whose computer or jobs are not to be had."""
        by_host = sorted(several, key=lambda writing: writing.host_id)
        is_locked = several[0].version is None
        looks = not is_locked or any(each.ready_jobs for each in several)
        rows = {part: [row for each in by_host for row in each.rows[part]] for part in several[0].rows}
        write = Step(
            rpc_sql.write(*rows, looks=looks), {part: orjson.dumps(its).decode() for part, its in rows.items()}
        )
        if not looks:
            return [write]
        requests = [{"host_id": each.host_id, "version": each.version, "jobs": each.ready_jobs} for each in by_host]
        reserve = rpc_sql.RESERVE if is_locked else rpc_sql.RESERVE_UNCHANGED
        # Locks are a statement of their own: what the next one sees is then no older than they are.
        return [Step(reserve, {"requests": orjson.dumps(requests).decode()}), write]

    @staticmethod
    def found(several: Sequence[Writing], rows: Sequence[Row]) -> list[set[int] | None]:
        """Of each the jobs that were sent; None: nothing was written, as what was read or is ready is outdated."""
        [(sent, locked)] = rows
        all_sent = set(sent)
        return [
            all_sent & {job["id"] for job in each.rows.get("sent", ())}
            if locked is None or each.host_id in locked
            else None
            for each in several
        ]


_NEVER_WAITS: Final = frozenset({"sent", "record", "host"})


def write(
    host: KnownHost, user_id: int, changes: Changes, ready_jobs: Sequence[int], now: dt.datetime, *, is_locked: bool
) -> Steps[set[int]]:
    """Store them; the ids of the jobs that were sent.

    ``ready_jobs``: those of them that nobody has locked yet. If the computer is not locked yet, it is locked, and all
    is written in a transaction that may be that of others, too. Raises Outdated if not all jobs are to be had or, if
    the computer is not locked yet, another request just has it, or its row was written since it was read.
    """
    version = None if is_locked else host.version
    rows = _rows(host.id, user_id, changes, now.isoformat())
    sent: set[int] | None = yield Writing(host.id, user_id, version, rows, ready_jobs)
    if sent is None:
        raise Outdated
    return sent


def _rows(host_id: int, user_id: int, changes: Changes, now: str) -> dict[str, list[dict[str, Any]]]:
    """The parts that have something to do, and their rows."""
    whose = {"host_id": host_id, "user_id": user_id}
    rows = {
        "sent": [job | whose | {"sent_at": now} for job in changes.jobs],
        "begun": [record | whose for record in changes.begun],
        "judged": [record | whose for record in changes.judged],
        "added": [record | whose for record in changes.added],
        "trickles": [trickle | whose | {"received_at": now} for trickle in changes.trickles],
        "first_record" if changes.is_first else "record": [changes.record | whose | {"last_rpc_at": now}],
    }
    if changes.description is None:
        rows["host"] = [{"host_id": host_id, "now": now}]
    else:
        rows["described_host"] = [{"host_id": host_id, "now": now, "description": changes.description}]
    found = {part: its for part, its in rows.items() if its}
    if any(job["must_replicate"] for job in changes.jobs):
        found["replicated"] = []
    return found


def job_row(
    job: Job, choice: Choice, deadline_at: dt.datetime, *, one_per_user: bool, must_replicate: bool
) -> dict[str, Any]:
    return {
        "id": job.id,
        "workunit_id": job.workunit_id,
        "app_version_id": choice.key.version_id or None,
        "processor_type": choice.processor_type,
        "peak_flops": choice.usage.peak_flops,
        "projected_flops": choice.flops,
        "deadline_at": deadline_at.isoformat(),
        "one_per_user": one_per_user,
        "must_replicate": must_replicate,
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
    }


def jobs_of_day_columns(jobs: JobsOfDay) -> dict[str, Any]:
    return {
        "jobs_day": jobs.day.isoformat() if jobs.day else None,
        "jobs_of_day": [[*key, njobs] for key, njobs in jobs.counts.items()],
    }
