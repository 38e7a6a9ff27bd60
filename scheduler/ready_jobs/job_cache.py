"""Ready jobs: each process reads some from the heads of the queues, and hands out most jobs from there.

A request then locks jobs that it knows, and need not look for any: looking, PostgreSQL joins all that it looks at, and
passes over each job that another request is just locking. Nothing rests on what lies here being true: the transaction
that writes a request locks its jobs, and sees whether all of them still wait. If not, nothing is written, and the
request answered anew (`scheduler.rpc.answer`).

So that two processes do not lay out the same jobs, each rents blocks of workunits (`scheduler.models.ShelfBlock`), for
longer than it uses them. A process that dies leaves its blocks to the others when that time is up; until then its jobs
are found by requests that look in the queue itself.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from portal.clients.wants import Once, Step, Steps, fetch
from scheduler.engine.facts import Ask, Job, JobDetails
from scheduler.programs.catalogue import BEFORE_ALL, KEPT_SECS, Catalogue
from scheduler.ready_jobs.sql import LAY_OUT

RENT_SECS: Final = 2 * KEPT_SECS
"""For how long no other process lays out the jobs; they are here no longer than the catalogue is kept."""
LAID_OUT: Final = 256
"""Jobs that are added at a time, about. With fewer than half of them left the next request adds some, while the others
take what is left; with fewer than an eighth they wait for it."""
LAID_OUT_NEAR_END: Final = 64
"""The same of a short queue, if requests want a few jobs each: the other processes want some of it too."""
REQUESTS: Final = 25
"""For so many there are enough in a lot even there, as far as `LAID_OUT` reaches."""
PAUSE_SECS: Final = 1.0
"""At the end of the queue, until it is read from its head again: a tenth of it if more than a few jobs were new."""
MISSES: Final = 3
"""Requests in a row that found too little for them: what lies here may be jobs that suit hardly anybody."""
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


class Shelf:
    """One app's ready jobs. Safe for the threads of a process, which do not wait for one another's fillings."""

    def __init__(self, app_id: int) -> None:
        self.app_id = app_id
        self._renter = random.SystemRandom().getrandbits(62)
        self._filling = threading.Lock()
        self._is_filling = False
        # While filling: how many, where to read on, and from when on, at the end of the queue.
        self._lot = LAID_OUT_NEAR_END
        self._place: Place | None = None
        self._not_before = 0.0
        self._lock = threading.Lock()
        # Under this lock, jobs by number: what lies here, in the queue's order; what is in hands, and whose; and what
        # was in hands since a filling began, which may still wait in what that reads. Who has copies, by workunit.
        self._jobs: dict[int, JobAtHand] = {}
        self._in_hands: dict[int, tuple[JobAtHand, int]] = {}
        self._taken_meanwhile: dict[int, tuple[JobAtHand, int]] = {}
        self._users: dict[int, set[int]] = {}
        # Of the catalogue as it was filled: what lies here lasts as long as that.
        self._read_at = float("-inf")
        self._nmisses = 0
        # Wanted by one request since then.
        self._most_wanted = 0

    def fill_if_low(self, known: Catalogue) -> Steps[None]:
        """Lay out more jobs of the queue if there are few."""
        if not self._is_low(known):
            return
        is_urgent = self._read_at < known.read_at or len(self._jobs) < self._lot // 8
        if is_urgent or not self._is_filling:
            # Noted at once: it begins only when the event loop comes to it.
            self._is_filling = True
            yield Once(("ready jobs", self.app_id), lambda: self._fill_alone(known))

    def _fill_alone(self, known: Catalogue) -> Steps[None]:
        if not self._filling.acquire(blocking=False):
            return
        try:
            if self._is_low(known):
                yield from self._fill(known)
        finally:
            self._filling.release()
            self._is_filling = False

    def _is_low(self, known: Catalogue) -> bool:
        is_few = len(self._jobs) < self._lot // 2 and time.monotonic() >= self._not_before
        return is_few or self._read_at < known.read_at

    def _fill(self, known: Catalogue) -> Steps[None]:
        if self._read_at < known.read_at:
            self._place = None
        with self._lock:
            self._taken_meanwhile = dict(self._in_hands)
            few = max(LAID_OUT_NEAR_END, REQUESTS * self._most_wanted)
        place = self._place or known.heads.get(self.app_id, BEFORE_ALL)
        found, self._place, is_near_end = yield from lay_out(self.app_id, self._renter, place, self._lot, RENT_SECS)
        with self._lock:
            self._nmisses = 0
            if self._read_at < known.read_at:
                self._read_at, self._jobs, self._most_wanted = known.read_at, {}, 0
                self._users = {}
                for each, user_id in self._taken_meanwhile.values():
                    self._users.setdefault(each.job.workunit_id, set()).add(user_id)
            nbefore = len(self._jobs)
            for each in found:
                if each.job.id not in self._taken_meanwhile:
                    self._lay(each)
            is_worth_while = len(self._jobs) >= nbefore + self._lot // 8
        pause_secs = PAUSE_SECS / 10 if is_worth_while else PAUSE_SECS
        self._not_before = time.monotonic() + pause_secs if self._place is None else 0.0
        self._lot = min(few, LAID_OUT) if is_near_end else LAID_OUT

    def _lay(self, each: JobAtHand) -> None:
        users = self._users.setdefault(each.job.workunit_id, set())
        users |= each.users
        each.users = users
        self._jobs[each.job.id] = each

    def has_jobs(self, known: Catalogue) -> bool:
        """Whether it is likely that there are some that suit: others take some at the same time."""
        return bool(self._jobs) and self._nmisses < MISSES and self._read_at >= known.read_at

    def take(self, ask: Ask, user_id: int, known: Catalogue) -> list[Job]:
        """As many jobs as are asked for, the first that suit, each of another workunit; none if too few do.

        No copy of a workunit of which another is in a hand: that request has its workunit locked.
        """
        with self._lock:
            if self._read_at < known.read_at:
                return []
            self._most_wanted = max(self._most_wanted, ask.most)
            workunits = {each.job.workunit_id for each, _ in self._in_hands.values()}
            found: list[JobAtHand] = []
            for each in self._jobs.values():
                if len(found) == ask.most:
                    break
                if each.job.workunit_id not in workunits and each.suits(ask, user_id):
                    found.append(each)
                    workunits.add(each.job.workunit_id)
            self._nmisses = self._nmisses + 1 if len(found) < ask.most else 0
            if self._nmisses:
                return []
            for each in found:
                del self._jobs[each.job.id]
                self._in_hands[each.job.id] = self._taken_meanwhile[each.job.id] = each, user_id
                each.users.add(user_id)
            return [each.job for each in found]

    def put_back(self, jobs: Iterable[Job]) -> None:
        """At their place in the queue, unless somebody found them there meanwhile."""
        with self._lock:
            for job in jobs:
                held = self._in_hands.pop(job.id, None)
                if held is not None:
                    each, user_id = held
                    self._taken_meanwhile.pop(job.id, None)
                    self._lay(each)
                    each.users.discard(user_id)
            self._jobs = dict(sorted(self._jobs.items(), key=lambda item: item[1].place))

    def forget(self, jobs: Iterable[Job], user_id: int | None = None) -> None:
        """They are sent, to this person if one is named, or not to be had: in nobody's hand any more, and not here."""
        with self._lock:
            for job in jobs:
                if user_id is not None and job.workunit_id in self._users:
                    self._users[job.workunit_id].add(user_id)
                self._in_hands.pop(job.id, None)
                self._jobs.pop(job.id, None)


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


_shelves: dict[int, Shelf] = {}


def fill(known: Catalogue) -> Steps[None]:
    """Fill the shelves that are in use; outside of any transaction."""
    for app_id in known.apps:
        if app_id in _shelves:
            yield from _shelves[app_id].fill_if_low(known)


def has_jobs(known: Catalogue) -> bool:
    """Whether it is worth while to look for some there first."""
    return any(app_id in _shelves and _shelves[app_id].has_jobs(known) for app_id in known.apps)


def forget(jobs: Iterable[Job], user_id: int | None = None) -> None:
    """Jobs that were sent, whether from a shelf or found in the queue itself, or are not to be had."""
    for app_id, its in _by_app(jobs).items():
        if app_id in _shelves:
            _shelves[app_id].forget(its, user_id)


def _by_app(jobs: Iterable[Job]) -> dict[int, list[Job]]:
    found: dict[int, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.app_id, []).append(job)
    return found


class Hand:
    """What one request has taken from the shelves and, at last, sends. ``takes`` False: it takes nothing."""

    def __init__(self, known: Catalogue, *, takes: bool = True) -> None:
        self._known = known
        self._takes = takes
        self._jobs: list[Job] = []

    def take(self, asks: Iterable[Ask], user_id: int) -> bool:
        """Take what is asked for of each app (`Shelf.take`); nothing, and False, if there is too little of one."""
        for ask in asks:
            shelf = _shelves.get(ask.app_id) or _shelves.setdefault(ask.app_id, Shelf(ask.app_id))
            found = shelf.take(ask, user_id, self._known) if self._takes else []
            if not found:
                self.keep(())
                return False
            self._jobs += found
        return True

    @property
    def jobs(self) -> list[Job]:
        return list(self._jobs)

    def keep(self, job_ids: Container[int]) -> list[int]:
        """Keep those that are to be sent, and put the others back; the numbers of those that are kept."""
        kept = [job for job in self._jobs if job.id in job_ids]
        if len(kept) < len(self._jobs):
            for app_id, jobs in _by_app(self._jobs).items():
                _shelves[app_id].put_back(job for job in jobs if job.id not in job_ids)
            self._jobs = kept
        return [job.id for job in kept]

    def empty(self) -> None:
        """The request is answered, or was undone: what is in it is sent, or not to be had."""
        forget(self._jobs)
        self._jobs = []
