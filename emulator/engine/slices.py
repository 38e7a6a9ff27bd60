"""The round-robin simulation in time slices: gone through only when a job may miss its deadline (forecast.Forecast).

At each step every kind of processor, GPUs first, is filled with jobs in order of arrival from the project of highest
priority; the step lasts to the next end, or one slice. Where no project waits for another's turn it lasts to the
next end in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heapreplace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from emulator.engine.state import Job, ProjectState

if TYPE_CHECKING:
    from emulator.engine.client import Client
    from emulator.engine.policy import ProjectView

LATE: Final = 1e-6  # a job late by less is not: rounding
LONGEST_STEP_PARTS: Final = 10  # a step beyond ten slices is a tenth of the next end
SHORT_STEPS: Final = 100  # so many steps at most are made short for a job that waits beside long ones

_id = attrgetter("id")


class Slices:
    """One simulation, from now on. `rank` and `unit` as for Forecast; `early_secs` comes off all deadlines."""

    def __init__(
        self,
        client: Client,
        rank: Callable[[ProjectView], float],
        unit: Callable[[ProjectView], float],
        now: float,
        early_secs: float,
    ) -> None:
        self._client = client
        self._now = now
        self._early_secs = early_secs
        kinds = len(client.kinds)
        self._order = [*range(1, kinds), 0]
        self._ranks: dict[int, float] = {}
        self._units: dict[int, float] = {}
        # Per kind and project: jobs to run in order of arrival, and what is left of each.
        self._queues: list[dict[int, list[Job]]] = [{} for _ in range(kinds)]
        self._left: dict[int, float] = {}
        self._takes_turns = False  # another project's job may run before the next end
        for project in client.projects:
            if not project.suspended:
                self._take_in(project, rank(project), unit(project))
        self.ends: dict[int, float] = {}  # by job, time from the start of the run
        self.steps = 0

    def _take_in(self, project: ProjectState, rank: float, unit: float) -> None:
        client, left, now = self._client, self._left, self._now
        if client.quirks.last_project_first:
            rank, unit = float(-project.index), 0.0
        self._ranks[project.index] = rank
        self._units[project.index] = unit
        for kind in self._order:
            jobs = [*project.begun[kind], *project.waiting[kind]]
            if jobs:
                jobs.sort(key=_id)
                self._queues[kind][project.index] = jobs
                up = client.up_fraction[kind]
                for job in jobs:
                    left[job.id] = job.left_secs(now) / up

    def go_on(self, watched: list[Job], *, to_last_deadline: bool) -> None:
        """Simulates until it is known of all watched jobs whether they are in time: each has ended, or its deadline
        is over. With `to_last_deadline` up to the last deadline unless all have ended before."""
        now, early = self._now, self._early_secs
        pending = sorted(watched, key=lambda job: job.deadline_secs)
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
                        # Not past the end of a short job that waits for its turn: it would seem to wait for days.
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
        ranks: dict[int, float] | None = None
        self._takes_turns = False
        for kind in self._order:
            queues = self._queues[kind]
            if not queues:
                continue
            if ranks is None:
                ranks = self._ranks.copy()
            before = len(active)
            if len(queues) == 1:
                self._fill_from_one(kind, queues, free, ranks, active)
            else:
                self._fill_in_turns(kind, queues, free, ranks, active)
                if len(active) - before < sum([len(jobs) for jobs in queues.values()]):
                    self._takes_turns = True
        return active

    def _fill_from_one(
        self, kind: int, queues: dict[int, list[Job]], free: list[float], ranks: dict[int, float], active: list[Job]
    ) -> None:
        ((index, jobs),) = queues.items()
        slice_unit, period = self._units[index], self._client.period_secs
        for job in jobs:
            if free[kind] <= 1e-9:
                return
            if not kind or job.usage <= free[kind] + 1e-9:
                free[kind] -= job.usage
                if kind:
                    free[0] -= job.cpus
                active.append(job)
                ranks[index] += slice_unit * job.counted_flops * period

    def _fill_in_turns(
        self, kind: int, queues: dict[int, list[Job]], free: list[float], ranks: dict[int, float], active: list[Job]
    ) -> None:
        units, period = self._units, self._client.period_secs
        heap = [(ranks[index], index, 0) for index in queues]
        heapify(heap)
        while heap and free[kind] > 1e-9:
            rank, index, place = heap[0]
            jobs = queues[index]
            job = jobs[place]
            if not kind or job.usage <= free[kind] + 1e-9:
                free[kind] -= job.usage
                if kind:
                    free[0] -= job.cpus
                active.append(job)
                rank += units[index] * job.counted_flops * period
                ranks[index] = rank
            if place + 1 < len(jobs):
                heapreplace(heap, (rank, index, place + 1))
            else:
                heappop(heap)

    def _advance(self, active: list[Job], step: float, at: float) -> None:
        ranks, units, lefts = self._ranks, self._units, self._left
        for job in active:
            index = job.project.index
            ranks[index] += units[index] * job.counted_flops * step
            left = lefts[job.id] = lefts[job.id] - step
            if left <= LATE:
                self.ends[job.id] = self._now + at
                del lefts[job.id]
                queue = self._queues[job.kind][index]
                queue.remove(job)
                if not queue:
                    del self._queues[job.kind][index]
