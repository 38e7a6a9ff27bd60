"""Which jobs run: the four steps of the client scheduling document, for any order of projects.

1. for each kind of GPU, jobs that would miss their deadline, earliest deadline first, until all instances are used;
2. the same for the CPU;
3. for each kind of GPU, while instances are left, other jobs in order of their projects' priority;
4. the same for the CPU.

As each is chosen its project's priority falls as if the job had run for one scheduling period. In steps 3 and 4
running jobs whose time slice is not over come first, and of each project a job that runs, then one that was
preempted, then a new one (emulator document, section 7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from emulator.engine.client import Client
from emulator.engine.forecast import Forecast
from emulator.engine.policy import Choice
from emulator.engine.reasons import Reason
from emulator.engine.state import NEVER, Job, ProjectState

if TYPE_CHECKING:
    from emulator.engine.policy import JobView, ProjectView

LEAST_MARGIN_SECS = 60.0


class Chooser:
    """Makes the choices of one run. `rank` and `unit` as for Forecast; `step_cost` tells by how much a project's
    rank grows when that job of it is chosen."""

    def __init__(
        self,
        client: Client,
        forecast: Forecast,
        rank: Callable[[ProjectView], float],
        step_cost: Callable[[JobView], float],
    ) -> None:
        self._client = client
        self._forecast = forecast
        self._rank = rank
        self._step_cost = step_cost
        self._gpus = range(1, len(client.kinds))
        self._slice_end: dict[int, float] = {}  # by job that runs
        self._taken: set[int] = set()
        self._costs: dict[int, float] = {}
        self._concurrent: dict[int, int] = {}

    def choose(self, now: float) -> Choice:
        """The jobs to run now, and when to choose again: the end of a time slice, or before a deadline is missed."""
        client = self._client
        self._free = [n if active else 0.0 for n, active in zip(client.instances, client.kind_active, strict=True)]
        self._jobs: list[JobView] = []
        self._reasons: list[Reason] = []
        self._taken.clear()
        self._costs.clear()
        again = NEVER
        forecast = self._forecast
        for kind in range(len(client.kinds)):
            if forecast.in_danger(kind, now):
                missed = forecast.missed(now)
                if forecast.margin_secs < NEVER:
                    again = now + max(LEAST_MARGIN_SECS, forecast.margin_secs)
                for gpu in self._gpus:
                    self._by_deadline(gpu, missed[gpu], Reason.GPU_DEADLINE)
                self._by_deadline(0, missed[0], Reason.CPU_DEADLINE)
                break
        for gpu in self._gpus:
            self._by_priority(gpu, now, Reason.GPU_PRIORITY)
        self._by_priority(0, now, Reason.CPU_PRIORITY)
        return Choice(self._jobs, self._reasons, min(again, self._end_slices(now)))

    def _end_slices(self, now: float) -> float:
        """Gives those chosen a new slice if theirs is over; returns when the first one ends."""
        before, after = self._slice_end, {}
        first = NEVER
        period = self._client.period_secs
        for job in self._jobs:
            end = before.get(job.id, 0.0) if job.running else 0.0
            if end <= now:
                end = now + period
            after[job.id] = end
            if end < first:
                first = end
        self._slice_end = after
        return first

    def _fits(self, job: Job) -> bool:
        free = self._free
        kind = job.kind
        if kind:
            if job.usage > free[kind] + 1e-9 or free[0] - job.cpus < -1.0 - 1e-9:
                return False
        elif free[0] <= 1e-9 or job.cpus >= free[0] + 1.0:
            return False
        limit = job.app.app.max_concurrent
        if limit or job.project.project.max_concurrent:
            mine = sum(1 for other in self._jobs if other.project is job.project)
            same = sum(1 for other in self._jobs if isinstance(other, Job) and other.app is job.app)
            return not (limit and same >= limit) and not 0 < job.project.project.max_concurrent <= mine
        return True

    def _take(self, job: Job, reason: Reason) -> float:
        self._free[job.kind] -= job.usage
        if job.kind:
            self._free[0] -= job.cpus
        self._jobs.append(job)
        self._reasons.append(reason)
        self._taken.add(job.id)
        index = job.project.index
        cost = self._step_cost(job)
        self._costs[index] = self._costs.get(index, 0.0) + cost
        return cost

    def _by_deadline(self, kind: int, missed: list[Job], reason: Reason) -> None:
        for job in missed:
            if self._free[kind] <= 1e-9:
                return
            if self._fits(job):
                self._take(job, reason)

    def _by_priority(self, kind: int, now: float, reason: Reason) -> None:
        client = self._client
        free = self._free
        if free[kind] <= 1e-9:
            return
        slice_end = self._slice_end
        taken = self._taken
        for job in client.running:
            if job.kind == kind and slice_end.get(job.id, 0.0) > now and job.id not in taken and self._fits(job):
                self._take(job, Reason.SLICE)
        if free[kind] <= 1e-9:
            return
        costs = self._costs
        heap = [
            (self._rank(project) + costs.get(project.index, 0.0), project.index, self._offers(project, kind))
            for project in client.projects
            if (project.waiting[kind] or project.begun[kind]) and not project.suspended
        ]
        heapify(heap)
        while heap and free[kind] > 1e-9:
            rank, index, offers = heap[0]
            job_or_none = next(offers, None)
            if job_or_none is None:
                heappop(heap)
            elif self._fits(job_or_none):
                heapreplace(heap, (rank + self._take(job_or_none, reason), index, offers))

    def _offers(self, project: ProjectState, kind: int) -> Iterator[Job]:
        """A project's jobs, the one to prefer first."""
        taken = self._taken
        begun = project.begun[kind]
        for job in begun:
            if job.running and job.id not in taken:
                yield job
        for job in begun:
            if not job.running and job.id not in taken:
                yield job
        for job in project.waiting[kind]:
            if job.id not in taken:
                yield job
