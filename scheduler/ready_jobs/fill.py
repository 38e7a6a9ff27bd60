"""Read jobs from the queue in advance, for this process alone to send (`scheduler.ready_jobs.job_cache`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from portal.clients.wants import Step, Steps, fetch
from scheduler.engine.facts import Ask, Job, JobDetails
from scheduler.ready_jobs.sql import LAY_OUT

LOOKED_AT: Final = 1_000
"""Waiting jobs among which those to keep ready are chosen: more than one process keeps, as others rent some of them."""

Place = tuple[int, int]
"""A place in an app's queue: (-priority, id)."""


@dataclass(slots=True)
class JobAtHand:
    """A job that is kept ready. ``users``: who has a copy of its workunit, or is just given one."""

    job: Job
    rank: int
    users: set[int]

    @property
    def place(self) -> Place:
        return self.rank, self.job.id

    def suits(self, ask: Ask, user_id: int) -> bool:
        """The same conditions as of jobs that are looked for in the queue."""
        job = self.job
        return (
            job.memory_bytes <= ask.memory_bytes
            and job.disk_bytes <= ask.disk_bytes
            and job.fpops_est <= ask.flops * (job.delay_bound_secs - ask.delay_secs)
            and not (ask.one_per_user and user_id in self.users)
        )


class _LaidOut(NamedTuple):
    """``workunits`` as JSON's text; ends are [-priority, id]."""

    nlooked_at: int
    end: list[int] | None
    nfree: int
    last_free: list[int] | None
    workunits: str | None


def lay_out(
    app_id: int, renter: int, place: Place, most: int, rent_secs: float
) -> Steps[tuple[list[JobAtHand], Place | None, bool]]:
    """Rent the first jobs of an app's queue from this place on, at most so many.

    Also where to go on, None at its end, and whether that is in sight: fewer than `LOOKED_AT` wait from the place on.

    One statement and transaction: it locks blocks in their order, and waits for none to forget it.
    """
    values = {
        "app_id": str(app_id),
        "renter": str(renter),
        "rank": str(place[0]),
        "begin_id": str(place[1]),
        "most": str(most),
        "looked_at": str(LOOKED_AT),
        "rent_secs": str(rent_secs),
    }
    row = _LaidOut(*(yield from fetch(Step(LAY_OUT, values)))[0])
    jobs = [job for workunit in orjson.loads(row.workunits or "[]") for job in _jobs(app_id, workunit)]
    jobs.sort(key=lambda job: job.place)
    last = row.last_free if row.nfree == most else row.end if row.nlooked_at == LOOKED_AT else None
    return jobs, None if last is None else (last[0], last[1] + 1), row.nlooked_at < LOOKED_AT


def _jobs(app_id: int, workunit: list[Any]) -> Iterator[JobAtHand]:
    """The copies of a workunit."""
    copies, users, id_, *facts = workunit
    details = JobDetails(*facts[6:])
    for result_id, rank, name in copies:
        job = Job(*[result_id, id_, app_id, name, *facts[:6], details])
        yield JobAtHand(job, rank, set(users))
