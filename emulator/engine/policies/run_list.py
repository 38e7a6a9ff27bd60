"""Which jobs run (BOINC's run list): the four steps of the client scheduling document, for any order of projects.

1. for each kind of GPU, jobs that would miss their deadline, earliest deadline first, until all instances are used;
2. the same for the CPU;
3. for each kind of GPU, while instances are left, other jobs in order of their projects' priority;
4. the same for the CPU.

As each is chosen its project's priority falls as if the job had run for one scheduling period. In steps 3 and 4
running jobs whose time slice is not over come first, and of each project a job that runs, then one that was
preempted, then a new one (emulator document, section 7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import Final

from emulator.engine.client import Client
from emulator.engine.decisions import Choice
from emulator.engine.policies.rr_simulation import MIN_MARGIN_SECS, Ranking, RoundRobinSimulation
from emulator.engine.state import NEVER, Job, ProjectState
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind

_NO_REASONS: Final[list[Reason]] = []


class RunList:
    """Chooses the jobs that run, for one run of the emulator (BOINC's make_run_list).

    `rank` as for RoundRobinSimulation; `step_cost` is by how much a project's rank grows when that job of it is
    chosen.
    """

    def __init__(
        self,
        client: Client,
        simulation: RoundRobinSimulation,
        rank: Ranking,
        step_cost: Callable[[Job], float],
    ) -> None:
        self._client = client
        self._simulation = simulation
        self._rank = rank
        self._step_cost = step_cost
        self._kinds = range(len(client.kinds))
        self._gpus = range(1, len(client.kinds))
        self._first_end = 0.0  # of the time slices of what runs
        self._taken: set[int] = set()
        self._waiting_for_ram: set[int] = set()
        self._full_at_moves = -1  # no instance was free, when this many jobs had stopped

    def choose(self, now: float) -> Choice:
        """The jobs to run now, and when to choose again: the end of a time slice, or before a deadline is missed."""
        client = self._client
        simulation = self._simulation
        endangered = now >= client.safe_until_secs and simulation.may_miss_deadlines(now)
        if not endangered and self._full_at_moves == client.moves and now < self._first_end:
            return Choice(client.running, _NO_REASONS, self._slice_end())
        self._free = [n if active else 0.0 for n, active in zip(client.instances, client.kind_active, strict=True)]
        self._jobs: list[Job] = []
        self._reasons: list[Reason] = []
        self._taken.clear()
        if endangered:
            missed = simulation.missed(now)
            for gpu in self._gpus:
                self._by_deadline(gpu, missed[gpu], Reason.GPU_DEADLINE)
            self._by_deadline(0, missed[0], Reason.CPU_DEADLINE)
        for gpu in self._gpus:
            self._by_priority(gpu, now, Reason.GPU_PRIORITY)
        self._by_priority(0, now, Reason.CPU_PRIORITY)
        self._first_end = self._end_slices(now)
        again = self._first_end if endangered else self._slice_end()
        if endangered:
            self._full_at_moves = -1
            for margin, job in simulation.margins:
                if job.id not in self._taken:
                    again = min(again, now + max(MIN_MARGIN_SECS, margin))
        elif max(self._free) > 1e-9:
            self._full_at_moves = -1
        else:
            # Applying the choice stops those whose slice is over and that were not chosen again.
            stops = sum([job.slice_end_secs <= now for job in client.running])
            self._full_at_moves = client.moves + stops
        return Choice(self._jobs, self._reasons, again)

    def _costs(self, jobs: Iterable[Job]) -> dict[int, float]:
        """By how much the choice of these jobs makes their projects' ranks grow."""
        costs: dict[int, float] = {}
        step_cost = self._step_cost
        for job in jobs:
            index = job.project.index
            costs[index] = costs.get(index, 0.0) + step_cost(job)
        return costs

    def _slice_end(self) -> float:
        """When the first time slice ends. It matters only if two projects have jobs for the same kind of processor."""
        return self._first_end if self._client.contested else NEVER

    def _end_slices(self, now: float) -> float:
        """Gives those chosen a new slice if theirs is over; returns when the first one ends."""
        first = new_end = now + self._client.period_secs
        for job in self._jobs:
            end = job.slice_end_secs
            if end <= now or not job.running:
                job.slice_end_secs = new_end
            elif end < first:
                first = end
        return first

    def _fits(self, job: Job) -> bool:
        free = self._free
        kind = job.kind
        if kind:
            if job.usage > free[kind] + 1e-9 or free[0] - job.cpus < -1.0 - 1e-9:
                return False
        elif free[0] <= 1e-9 or (job.cpus > 1.0 and self._overcommits(job)):
            return False
        if job.app.app.working_set_bytes and self._client.ram_bytes < NEVER and not self._fits_ram(job):
            return False
        limit = job.app.app.max_concurrent
        if limit or job.project.project.max_concurrent:
            mine = sum(1 for other in self._jobs if other.project is job.project)
            same = sum(1 for other in self._jobs if other.app is job.app)
            return not (limit and same >= limit) and not 0 < job.project.project.max_concurrent <= mine
        return True

    def _overcommits(self, job: Job) -> bool:
        """Whether a job of several CPUs would take more than the other CPU jobs leave of those that the owner allows.
        The last job of one CPU or less may, and one that is alone, as it could never run otherwise."""
        used = sum([other.cpus for other in self._jobs if not other.kind])
        return used > 0.0 and used + job.cpus > self._client.instances[0] + 1e-9

    def _fits_ram(self, job: Job) -> bool:
        """Whether there is RAM for it beside those chosen; else it waits, and a smaller one may run."""
        client = self._client
        used = sum(other.app.app.working_set_bytes for other in self._jobs)
        if used + job.app.app.working_set_bytes <= client.ram_bytes:
            self._waiting_for_ram.discard(job.id)
            return True
        if job.id not in self._waiting_for_ram:
            self._waiting_for_ram.add(job.id)
            client.log.add(client.now, DecisionKind.STOP, Reason.NO_MEMORY, job.project.index, job.id, job.kind)
        return False

    def _take(self, job: Job, reason: Reason) -> None:
        self._free[job.kind] -= job.usage
        if job.kind:
            self._free[0] -= job.cpus
        self._jobs.append(job)
        self._reasons.append(reason)
        self._taken.add(job.id)

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
        self._keep(kind, now)
        if free[kind] <= 1e-9:
            return
        rank, step_cost = self._rank, self._step_cost
        projects = client.with_jobs[kind]
        costs = self._costs(self._jobs) if len(projects) > 1 else {}  # one project has no other to compare with
        heap = []
        for project in projects:
            if not project.suspended:
                is_last, height = rank(project)
                heap.append((is_last, height + costs.get(project.index, 0.0), project.index, project))
        heapify(heap)
        offers: dict[int, Iterator[Job]] = {}
        while heap and free[kind] > 1e-9:
            is_last, height, index, project = heap[0]
            if index not in offers:
                offers[index] = self._offers(project, kind, now)
            offered = next(offers[index], None)
            if offered is None:
                heappop(heap)
            elif self._fits(offered):
                self._take(offered, reason)
                heapreplace(heap, (is_last, height + step_cost(offered), index, project))

    def _keep(self, kind: int, now: float) -> None:
        """Takes the running jobs whose time slice is not over."""
        for job in self._client.running:
            is_kept = job.slice_end_secs > now and job.kind == kind and job.id not in self._taken
            if is_kept and not job.project.suspended and self._fits(job):
                self._take(job, Reason.SLICE)

    def _offers(self, project: ProjectState, kind: int, now: float) -> Iterator[Job]:
        """A project's jobs that were not kept, the preferred one first."""
        taken = self._taken
        begun = project.begun[kind]
        if begun:
            for job in begun:
                if job.running and job.slice_end_secs <= now and job.id not in taken:
                    yield job
            for job in begun:
                if not job.running and job.id not in taken:
                    yield job
        for job in project.waiting[kind]:
            if job.id not in taken:
                yield job
