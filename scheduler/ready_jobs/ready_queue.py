"""The ready jobs of one queue of an app: how they are leased, kept, and given up. `job_cache` hands them out.

So that no two processes keep the same jobs, each leases blocks of positions in the queue (`scheduler.models.JobLease`)
for longer than it uses them. When a process dies, its blocks go to the others once its leases expire. Until then,
requests that search the queue itself find its jobs.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from portal.clients.database.json_rows import JsonRow, decode
from portal.clients.effects import SingleFlight, Step, fetch
from scheduler.engine.facts import Job, JobDetails, JobQuery
from scheduler.programs.catalogue import BEFORE_ALL, KEPT_SECS, Catalogue
from scheduler.ready_jobs.sql import LEASE_JOBS, LEASE_JOBS_OF_SIZE

LEASE_SECS: Final = 2 * KEPT_SECS
"""How long no other process may lease the jobs. They stay in the cache no longer than the catalogue does."""
FILL_NJOBS: Final = 256
"""About how many jobs are added at a time.

When fewer than half of these are left, the next request adds some while others take what is left; when fewer than an
eighth are left, they wait for it.
"""
FILL_NJOBS_NEAR_END: Final = 64
"""The same for a short queue if each request needs few jobs, because the other processes need some of it too."""
REQUESTS_PER_FILL: Final = 25
"""Even in a short queue, one filling should last for this many requests, if `FILL_NJOBS` allows it."""
PAUSE_SECS: Final = 1.0
"""The pause at the end of the queue before it is read from its head again; a tenth of it if many jobs were new."""
MAX_MISSES: Final = 3
"""After this many requests in a row found too few jobs, the cache may hold jobs that suit hardly anybody."""
MAX_LOOKED_AT: Final = 1_000
"""The jobs to lease are chosen from this many waiting jobs: more than a process keeps, because others lease some."""
NEAR_END_NJOBS: Final = 2 * FILL_NJOBS
"""A queue is short if fewer jobs wait from a position on. No more are counted: counting is most of a filling's cost."""

Place = tuple[int, int]
"""A position in an app's queue: (-priority, the result's id + its shift)."""


@dataclass(slots=True)
class ReadyJob:
    """A job that is kept ready.

    ``holders``: the ties (`engine.choice.ties`), which include account numbers, of everybody who has a copy of its
    workunit or is being given one. ``sticky_files``: the names of its inputs that computers keep.
    """

    job: Job
    place: Place
    holders: set[int]
    sticky_files: frozenset[str] = frozenset()

    def suits(self, query: JobQuery, user_id: int) -> bool:
        """Whether the job meets the same conditions that a search of the queue has."""
        job = self.job
        return (
            job.memory_bytes <= query.memory_bytes
            and job.disk_bytes <= query.disk_bytes
            and job.fpops_est <= query.flops * (job.delay_bound_secs - query.delay_secs)
            and not (query.one_per_user and user_id in self.holders)
            and not (query.avoids_ties and not self.holders.isdisjoint(query.ties))
        )


class ReadyQueue:
    """Ready jobs of one queue of an app: of lane 0, or of a size class's lane.

    ``lock``: that of the cache it belongs to. Methods that say so are called with the lock held. Fillings run in
    several threads, which do not wait for one another.
    """

    def __init__(self, app_id: int, lane: int, lock: threading.Lock) -> None:
        self.app_id = app_id
        self.lane = lane
        self._holder = random.SystemRandom().getrandbits(62)
        self._fill_lock = threading.Lock()
        self._is_filling = False
        # For the next filling: how many jobs, where to continue reading and, at the end of the queue, the earliest
        # time.
        self._fill_njobs = FILL_NJOBS_NEAR_END
        self._place: Place | None = None
        self._not_before = 0.0
        self._lock = lock
        # Everything below is used under this lock. By job number: the ready jobs in the queue's order; the jobs that
        # requests have taken, with the holders that adds; and the jobs taken since a filling began, which may still be
        # waiting in what it reads.
        self._jobs: dict[int, ReadyJob] = {}
        self._taken: dict[int, tuple[ReadyJob, set[int]]] = {}
        self._taken_since_fill: dict[int, tuple[ReadyJob, set[int]]] = {}
        # By workunit number: the holders of copies.
        self._holders: dict[int, set[int]] = {}
        # When the catalogue was read that the queue was filled with. The jobs are kept no longer than that catalogue.
        self._read_at = float("-inf")
        self._nmisses = 0
        # The most jobs that one request needed since then.
        self._most_requested = 0

    async def fill_if_low(self, catalogue: Catalogue) -> None:
        """Lease more jobs if few are left."""
        if not self._is_low(catalogue):
            return
        is_urgent = self._read_at < catalogue.read_at or len(self._jobs) < self._fill_njobs // 8
        if is_urgent or not self._is_filling:
            # Set now, because the filling only begins when the event loop runs it.
            self._is_filling = True
            await SingleFlight(("ready jobs", self.app_id, self.lane), lambda: self._fill_alone(catalogue))

    async def _fill_alone(self, catalogue: Catalogue) -> None:
        if not self._fill_lock.acquire(blocking=False):
            return
        try:
            if self._is_low(catalogue):
                await self._fill(catalogue)
        finally:
            self._fill_lock.release()
            self._is_filling = False

    def _is_low(self, catalogue: Catalogue) -> bool:
        is_few = len(self._jobs) < self._fill_njobs // 2 and time.monotonic() >= self._not_before
        return is_few or self._read_at < catalogue.read_at

    async def _fill(self, catalogue: Catalogue) -> None:
        if self._read_at < catalogue.read_at:
            self._place = None
        with self._lock:
            self._taken_since_fill = dict(self._taken)
            few = max(FILL_NJOBS_NEAR_END, REQUESTS_PER_FILL * self._most_requested)
        # The head is that of lane 0: what waits in a size class may lie before it.
        head = BEFORE_ALL if self.lane else catalogue.heads.get(self.app_id, BEFORE_ALL)
        place = self._place or head
        leased, self._place, is_near_end = await lease_jobs(
            self.app_id, self._holder, place, self._fill_njobs, LEASE_SECS, self.lane
        )
        with self._lock:
            self._nmisses = 0
            if self._read_at < catalogue.read_at:
                self._read_at, self._jobs, self._most_requested = catalogue.read_at, {}, 0
                self._holders = {}
                for ready, ties in self._taken_since_fill.values():
                    self._holders.setdefault(ready.job.workunit_id, set()).update(ties)
            nbefore = len(self._jobs)
            for ready in leased:
                if ready.job.id not in self._taken_since_fill:
                    self._add(ready)
            is_worth_while = len(self._jobs) >= nbefore + self._fill_njobs // 8
        pause_secs = PAUSE_SECS / 10 if is_worth_while else PAUSE_SECS
        self._not_before = time.monotonic() + pause_secs if self._place is None else 0.0
        self._fill_njobs = min(few, FILL_NJOBS) if is_near_end else FILL_NJOBS

    def _add(self, ready: ReadyJob) -> None:
        holders = self._holders.setdefault(ready.job.workunit_id, set())
        holders |= ready.holders
        ready.holders = holders
        self._jobs[ready.job.id] = ready

    def is_of(self, catalogue: Catalogue) -> bool:
        """Whether the jobs were leased since this catalogue was read. With the lock held."""
        return self._read_at >= catalogue.read_at

    def has_jobs(self, catalogue: Catalogue) -> bool:
        """Whether a request will probably find jobs. Other requests take jobs at the same time."""
        return bool(self._jobs) and self._nmisses < MAX_MISSES and self._read_at >= catalogue.read_at

    def jobs(self) -> Collection[ReadyJob]:
        """Return the ready jobs in the queue's order. With the lock held."""
        return self._jobs.values()

    def taken_workunits(self) -> set[int]:
        """Return the workunits of copies that requests have taken: they are locked, or about to be.

        With the lock held.
        """
        return {ready.job.workunit_id for ready, _ in self._taken.values()}

    def note(self, requested: int, *, is_miss: bool) -> None:
        """Record that a request needed this many jobs, and whether the queue had too few. With the lock held."""
        self._most_requested = max(self._most_requested, requested)
        self._nmisses = self._nmisses + 1 if is_miss else 0

    def hand_out(self, ready: ReadyJob, ties: Iterable[int]) -> None:
        """Give a job to somebody with these ties. With the lock held."""
        del self._jobs[ready.job.id]
        added = set(ties) - ready.holders
        self._taken[ready.job.id] = self._taken_since_fill[ready.job.id] = ready, added
        ready.holders |= added

    def put_back(self, jobs: Iterable[Job]) -> None:
        """Put jobs back in their positions, unless somebody has found them in the database. With the lock held."""
        for job in jobs:
            held = self._taken.pop(job.id, None)
            if held is not None:
                ready, added = held
                self._taken_since_fill.pop(job.id, None)
                self._add(ready)
                ready.holders -= added
        self._jobs = dict(sorted(self._jobs.items(), key=lambda item: item[1].place))

    def forget(self, jobs: Iterable[Job], ties: Iterable[int] = ()) -> None:
        """Drop jobs that are no longer available, or that were sent (to somebody with these ties, if given).

        With the lock held.
        """
        for job in jobs:
            if job.workunit_id in self._holders:
                self._holders[job.workunit_id].update(ties)
            self._taken.pop(job.id, None)
            self._jobs.pop(job.id, None)


class _Copy(JsonRow):
    """A leased job and its position in the queue."""

    id: int
    rank: int
    place: int
    name: str


class _Workunit(JsonRow):
    """A workunit with leased copies; ``holders`` are those of `ReadyJob`."""

    id: int
    copies: list[_Copy]
    holders: list[int]
    fpops_est: float
    fpops_bound: float
    memory_bytes: int
    disk_bytes: int
    delay_bound_secs: int
    min_quorum: int
    name: str
    command_line: str
    input_files: list[dict[str, Any]]
    output_files: list[dict[str, Any]]


class _Leased(JsonRow):
    """The JSON returned by `LEASE_JOBS`; ``last`` is a position."""

    last: Place | None
    nahead: int
    workunits: list[_Workunit] | None


_LEASED: Final = msgspec.json.Decoder(_Leased)


async def lease_jobs(
    app_id: int, holder: int, place: Place, most: int, lease_secs: float, lane: int = 0
) -> tuple[list[ReadyJob], Place | None, bool]:
    """Lease the first jobs from this position on in an app's queue for this lane, at most this many.

    Also returns where to continue (None at the queue's end), and whether the end is near: fewer than `NEAR_END_NJOBS`
    jobs wait from the position on. One statement and transaction.
    """
    values = {
        "app_id": str(app_id),
        "lane": str(lane),
        "holder": str(holder),
        "rank": str(place[0]),
        "begin": str(place[1]),
        "most": str(most),
        "looked_at": str(MAX_LOOKED_AT),
        "near_end": str(NEAR_END_NJOBS),
        "lease_secs": str(lease_secs),
    }
    [row] = decode(_LEASED, await fetch(Step(LEASE_JOBS_OF_SIZE if lane else LEASE_JOBS, values)))
    jobs = [job for workunit in row.workunits or () for job in _jobs(app_id, lane, workunit)]
    jobs.sort(key=lambda job: job.place)
    place_after = None if row.last is None else (row.last[0], row.last[1] + 1)
    return jobs, place_after, row.nahead < NEAR_END_NJOBS


def _jobs(app_id: int, lane: int, workunit: _Workunit) -> Iterator[ReadyJob]:
    """Build the ready jobs of a workunit's copies."""
    details = JobDetails(workunit.name, workunit.command_line, workunit.input_files, workunit.output_files)
    sticky_files = frozenset(file["name"] for file in workunit.input_files if file.get("sticky"))
    for copy in workunit.copies:
        job = Job(
            id=copy.id,
            workunit_id=workunit.id,
            app_id=app_id,
            name=copy.name,
            fpops_est=workunit.fpops_est,
            fpops_bound=workunit.fpops_bound,
            memory_bytes=workunit.memory_bytes,
            disk_bytes=workunit.disk_bytes,
            delay_bound_secs=workunit.delay_bound_secs,
            min_quorum=workunit.min_quorum,
            details=details,
            lane=lane,
        )
        yield ReadyJob(job, (copy.rank, copy.place), set(workunit.holders), sticky_files)
