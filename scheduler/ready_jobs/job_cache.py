"""The job cache: each process leases some jobs from the heads of the queues, and sends most jobs from there.

BOINC's feeder has the same purpose. A request then locks known jobs, and need not search for any. Searching is
expensive: PostgreSQL joins all rows that it examines, and skips each job that another request has locked.

Nothing depends on the cache being right. The transaction that writes a request locks its jobs, and checks that all of
them still wait. If not, nothing is written, and the request is answered again (`scheduler.rpc.answer`).

Each size class of an app has its own queue (`engine.choice.sizes`), so that a computer finds jobs of its class at once,
whatever else waits.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Container, Iterable, Sequence
from typing import Any

from scheduler.engine.facts import Job, JobQuery
from scheduler.programs.catalogue import Catalogue
from scheduler.ready_jobs.ready_queue import ReadyJob, ReadyQueue


class JobCache:
    """The ready jobs of one app. Safe for the threads of a process."""

    def __init__(self, app_id: int) -> None:
        self.app_id = app_id
        self._lock = threading.Lock()
        self.queues = {0: ReadyQueue(app_id, 0, self._lock)}

    async def fill_if_low(self, catalogue: Catalogue) -> None:
        """Lease more jobs for the queues that have few."""
        for lane in [0, *self._sizes(catalogue)]:
            if lane in self.queues:
                await self.queues[lane].fill_if_low(catalogue)

    def _sizes(self, catalogue: Catalogue) -> Iterable[int]:
        """Return the lanes of size classes with waiting jobs."""
        index = catalogue.lanes.get(self.app_id)
        return index.sizes if index is not None else ()

    def has_jobs(self, catalogue: Catalogue) -> bool:
        """Whether a request will probably find jobs. Other requests take jobs at the same time."""
        return any(queue.has_jobs(catalogue) for queue in list(self.queues.values()))

    def take(self, query: JobQuery, user_id: int, catalogue: Catalogue) -> list[Job]:
        """Take the first jobs that suit the query, up to the number requested, each of a different workunit; none if
        too few suit.

        If another request has taken a copy of a workunit, no other copy is taken, because that request has the workunit
        locked. Copies reserved for others go to this person only if there are too few jobs without them.
        """
        lanes = [0, *(lane for lane in query.sizes if lane in self._sizes(catalogue))]
        with self._lock:
            queues = [self._queue(lane) for lane in lanes]
            if not all(queue.is_of(catalogue) for queue in queues):
                return []
            workunits = set[int]().union(*(queue.taken_workunits() for queue in queues))
            suitable = _suitable(queues, query, user_id, query.most, workunits)
            if len(suitable) < query.most and query.avoids_ties and not query.is_strict:
                suitable += _suitable(queues, query.with_ties(), user_id, query.most - len(suitable), workunits)
            is_miss = len(suitable) < query.most
            for queue in queues:
                queue.note(query.most, is_miss=is_miss)
            if is_miss:
                return []
            for ready in suitable:
                self.queues[ready.job.lane].hand_out(ready, {user_id, *query.ties})
            return [ready.job for ready in suitable]

    def _queue(self, lane: int) -> ReadyQueue:
        if lane not in self.queues:
            self.queues[lane] = ReadyQueue(self.app_id, lane, self._lock)
        return self.queues[lane]

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Put jobs back in their positions."""
        with self._lock:
            for queue in self.queues.values():
                queue.put_back(jobs)

    def forget(self, jobs: Sequence[Job], ties: Iterable[int] = ()) -> None:
        """Drop jobs that are no longer available, or that were sent (to somebody with these ties, if given)."""
        with self._lock:
            for queue in self.queues.values():
                queue.forget(jobs, ties)


def _suitable(
    queues: Sequence[ReadyQueue], query: JobQuery, user_id: int, most: int, workunits: set[int]
) -> list[ReadyJob]:
    """Return the first jobs that suit, each of a different workunit; adds these workunits to ``workunits``."""
    jobs: list[ReadyJob] = []
    for ready in _in_order(queues, query):
        if len(jobs) == most:
            break
        if ready.job.workunit_id not in workunits and ready.suits(query, user_id):
            jobs.append(ready)
            workunits.add(ready.job.workunit_id)
    return jobs


def _in_order(queues: Sequence[ReadyQueue], query: JobQuery) -> Iterable[ReadyJob]:
    """Yield ready jobs by priority, within it those of a suitable size first, then those with a file that the computer
    has.

    A file counts only for the first copy of a job: naming it must not lead to the result that an accomplice's is
    compared with.
    """
    held = frozenset(query.held_files)
    if len(queues) == 1 and not held:
        return queues[0].jobs()
    steps = {0: 0} | {lane: step for step, lane in enumerate(query.sizes)}

    def order(ready: ReadyJob) -> tuple[Any, ...]:
        rank, place = ready.place
        # 0 stands for copies that nobody has.
        has_file = ready.holders <= {0} and not held.isdisjoint(ready.sticky_files)
        return rank, steps[ready.job.lane], not has_file, place

    parts = (sorted(queue.jobs(), key=order) if held else queue.jobs() for queue in queues)
    return heapq.merge(*parts, key=order)


_caches: dict[int, JobCache] = {}
"""The caches of this process, by app."""


async def fill(catalogue: Catalogue) -> None:
    """Fill the caches that are in use; outside of any transaction."""
    for app_id in catalogue.apps:
        if app_id in _caches:
            await _caches[app_id].fill_if_low(catalogue)


def has_jobs(catalogue: Catalogue) -> bool:
    """Whether it is worthwhile to search the caches first."""
    return any(app_id in _caches and _caches[app_id].has_jobs(catalogue) for app_id in catalogue.apps)


def forget(jobs: Iterable[Job], ties: Sequence[int] = ()) -> None:
    """Drop jobs that were sent, whether from a cache or from the queue itself, or that are no longer available."""
    for app_id, app_jobs in _by_app(jobs).items():
        if app_id in _caches:
            _caches[app_id].forget(app_jobs, ties)


def _by_app(jobs: Iterable[Job]) -> dict[int, list[Job]]:
    by_app: dict[int, list[Job]] = {}
    for job in jobs:
        by_app.setdefault(job.app_id, []).append(job)
    return by_app


class TakenJobs:
    """The jobs that one request has taken from the caches and finally sends. ``takes`` False: it takes none."""

    def __init__(self, catalogue: Catalogue, *, takes: bool = True) -> None:
        self._catalogue = catalogue
        self._takes = takes
        self._jobs: list[Job] = []

    def take(self, queries: Iterable[JobQuery], user_id: int) -> bool:
        """Take the requested jobs of each app (`JobCache.take`); if one app has too few, take none and return False."""
        for query in queries:
            cache = _caches.get(query.app_id) or _caches.setdefault(query.app_id, JobCache(query.app_id))
            taken = cache.take(query, user_id, self._catalogue) if self._takes else []
            if not taken:
                self.keep(())
                return False
            self._jobs += taken
        return True

    @property
    def jobs(self) -> list[Job]:
        return list(self._jobs)

    def keep(self, job_ids: Container[int]) -> list[int]:
        """Keep the jobs that will be sent, put the others back, and return the ids of those kept."""
        kept = [job for job in self._jobs if job.id in job_ids]
        if len(kept) < len(self._jobs):
            for app_id, jobs in _by_app(self._jobs).items():
                _caches[app_id].put_back([job for job in jobs if job.id not in job_ids])
            self._jobs = kept
        return [job.id for job in kept]

    def release(self) -> None:
        """Forget the jobs once the request is answered or rolled back: they were sent, or are no longer available."""
        forget(self._jobs)
        self._jobs = []
