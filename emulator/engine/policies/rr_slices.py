"""The round-robin simulation that finds late jobs: run only when a job may miss its deadline (see rr_simulation).

At each step every kind of processor, GPUs first, is filled with jobs in order of arrival from the project of highest
priority; the step lasts to the next end, or one slice. Where no project waits for another's turn it lasts to the
next end in any case.

One choice of jobs may take hundreds of steps. So a kind for which only one project has jobs is filled again only
when one of them has ended, or when GPU jobs leave it another number of CPUs. Ranks are updated only if two projects
have jobs for the same kind.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heapreplace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from emulator.engine.policies.forecast import Rank
from emulator.engine.state import Job, ProjectState

if TYPE_CHECKING:
    from emulator.engine.client import Client

LATE: Final = 1e-6  # a job late by less is not: rounding
LONGEST_STEP_PARTS: Final = 10  # a step beyond ten slices is a tenth of the next end
SHORT_STEPS: Final = 100  # this many steps at most are made short for a job that waits beside long ones

_id = attrgetter("id")
_deadline = attrgetter("deadline_secs")


_Filled = tuple[float, "list[Job]", float, float]
"""How a kind with jobs of one project was filled: the CPUs free before, the jobs that run, instances and CPUs left."""


class RoundRobinSlices:
    """One simulation, from now on. `rank` and `unit` as for RoundRobinSimulation; all deadlines count as
    `early_secs` earlier."""

    def __init__(
        self,
        client: Client,
        rank: Callable[[ProjectState], Rank],
        unit: Callable[[ProjectState], float],
        now: float,
        early_secs: float,
    ) -> None:
        self._client = client
        self._now = now
        self._early_secs = early_secs
        kinds = len(client.kinds)
        self._order = [*range(1, kinds), 0]
        self._is_last: dict[int, bool] = {}
        self._ranks: dict[int, float] = {}
        self._units: dict[int, float] = {}
        # Per kind and project: jobs to run in order of arrival, and the rest of each, in seconds.
        self._queues: list[dict[int, list[Job]]] = [{} for _ in range(kinds)]
        self._left: dict[int, float] = {}
        self._least_usage: dict[tuple[int, int], float] = {}  # of a project's jobs for a kind of GPU
        self._filled: dict[int, _Filled] = {}  # by kind, as long as it holds
        self._limited = client.limited
        # For some kind two projects have jobs, or had.
        self._ranked = client.contested or client.limited
        self._takes_turns = False  # another project's job may run before the next end
        for project in client.projects:
            if project.unfinished and not project.suspended:
                self._take_in(project, rank(project), unit(project))
        self.ends: dict[int, float] = {}  # by job, time from the start of the run
        self.steps = 0

    def _take_in(self, project: ProjectState, rank: Rank, unit: float) -> None:
        client, left, now = self._client, self._left, self._now
        if client.quirks.last_project_first:
            rank, unit = (False, float(-project.index)), 0.0
        self._is_last[project.index], self._ranks[project.index] = rank
        self._units[project.index] = unit
        for kind in self._order:
            jobs = [*project.begun[kind], *project.waiting[kind]]
            if jobs:
                jobs.sort(key=_id)
                self._queues[kind][project.index] = jobs
                if kind:
                    self._least_usage[kind, project.index] = min([job.usage for job in jobs])
                up = client.up_fraction[kind]
                for job in jobs:  # Job.left_secs, without a call for each
                    left[job.id] = (job.left - (now - job.settled_secs) * job.rate) * job.bias / up

    def go_on(self, watched: list[Job], *, to_last_deadline: bool) -> None:
        """Simulates until it is known for all watched jobs whether they are in time: each has ended, or its deadline
        has passed. With `to_last_deadline`, up to the last deadline unless all have ended before."""
        now, early = self._now, self._early_secs
        pending = sorted(watched, key=_deadline)
        last = pending[-1].deadline_secs
        left, ends = self._left, self.ends
        period = self._client.period_secs
        short_steps = SHORT_STEPS
        at = 0.0
        while pending and at < (last if to_last_deadline else pending[-1].deadline_secs) - early - now:
            active = self._fill()
            if not active:
                break
            step = min([left[job.id] for job in active])
            if self._takes_turns:
                if step > LONGEST_STEP_PARTS * period:
                    step /= LONGEST_STEP_PARTS
                    if short_steps:
                        # Stop at the end of a short job that waits for its turn, or it would seem to wait for days.
                        short_steps -= 1
                        step = max(period, min(step, min(left.values())))
                elif step > period:
                    step = period
            at += step
            self._advance(active, step, at)
            self.steps += 1
            while pending and pending[-1].id in ends:
                pending.pop()

    def _fill(self) -> list[Job]:
        """The jobs of the next step."""
        free = list(self._client.instances)
        active: list[Job] = []
        ranks = self._ranks.copy() if self._ranked else None
        self._takes_turns = False
        for kind in self._order:
            queues = self._queues[kind]
            if not queues:
                continue
            if ranks is not None and (len(queues) > 1 or self._limited):
                before = len(active)
                self._fill_in_turns(kind, queues, free, ranks, active)
                if len(active) - before < sum([len(jobs) for jobs in queues.values()]):
                    self._takes_turns = True
                continue
            filled = self._filled.get(kind)
            if filled is None or filled[0] != free[0]:
                self._filled[kind] = filled = self._fill_from_one(kind, queues, free)
            _, chosen, free[kind], free[0] = filled
            active += chosen
            if ranks is not None:
                for job in chosen:
                    index = job.project.index
                    ranks[index] += self._units[index] * job.counted_flops * self._client.period_secs
        return active

    def _fill_from_one(self, kind: int, queues: dict[int, list[Job]], free: list[float]) -> _Filled:
        n, cpus = free[kind], free[0]
        ((index, jobs),) = queues.items()
        least = self._least_usage[kind, index] if kind else 0.0
        active = []
        for job in jobs:
            if n <= 1e-9:
                break
            if not kind or job.usage <= n + 1e-9:
                n -= job.usage
                cpus -= job.cpus  # for a CPU job the same
                active.append(job)
            elif least > n + 1e-9:
                break  # none of them fits any more
        return free[0], active, n, cpus

    def _fill_in_turns(
        self,
        kind: int,
        queues: dict[int, list[Job]],
        free: list[float],
        ranks: dict[int, float],
        active: list[Job],
    ) -> None:
        heap = [(self._is_last[index], ranks[index], index, 0) for index in queues]
        heapify(heap)
        units, period = self._units, self._client.period_secs
        least_usage = self._least_usage
        while heap and free[kind] > 1e-9:
            is_last, rank, index, place = heap[0]
            jobs = queues[index]
            job = jobs[place]
            place += 1
            if self._limited and _at_limit(job, active):
                pass  # the next one may be of another application
            elif not kind or job.usage <= free[kind] + 1e-9:
                free[kind] -= job.usage
                if kind:
                    free[0] -= job.cpus
                active.append(job)
                rank += units[index] * job.counted_flops * period
                ranks[index] = rank
            elif least_usage[kind, index] > free[kind] + 1e-9:
                place = len(jobs)  # none of them fits any more
            if place < len(jobs):
                heapreplace(heap, (is_last, rank, index, place))
            else:
                heappop(heap)

    def _advance(self, active: list[Job], step: float, at: float) -> None:
        ranks, units, lefts = self._ranks, self._units, self._left
        ranked = self._ranked
        for job in active:
            index = job.project.index
            if ranked:
                ranks[index] += units[index] * job.counted_flops * step
            left = lefts[job.id] = lefts[job.id] - step
            if left <= LATE:
                self.ends[job.id] = self._now + at
                del lefts[job.id]
                kind = job.kind
                if kind in self._filled:
                    del self._filled[kind]
                queue = self._queues[kind][index]
                queue.remove(job)
                if not queue:
                    del self._queues[kind][index]


def _at_limit(job: Job, active: list[Job]) -> bool:
    """Whether as many jobs of its application, or of its project, run as may run at once."""
    of_app, of_project = job.app.app.max_concurrent, job.project.project.max_concurrent
    if of_app and sum([other.app is job.app for other in active]) >= of_app:
        return True
    return 0 < of_project <= sum([other.project is job.project for other in active])
