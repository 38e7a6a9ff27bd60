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
from emulator.engine.policies.rr_simulation import MIN_MARGIN_SECS, RoundRobinSimulation
from emulator.engine.state import NEVER, Job, ProjectState
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind

_NO_REASONS: Final[list[Reason]] = []
_FIRST_IN_RANK: Final = [Reason.CPU_PRIORITY]


class RunList:
    """Chooses the jobs that run, for one run of the emulator (BOINC's make_run_list).

    `rank` as for RoundRobinSimulation; `step_cost` is by how much a project's rank grows when that job of it is
    chosen. `height` may give both at once: a project's rank once this many jobs like its first begun one are chosen.
    """

    def __init__(
        self,
        client: Client,
        simulation: RoundRobinSimulation,
        rank: Callable[[ProjectState], float],
        step_cost: Callable[[Job], float],
        height: Callable[[ProjectState, int], float] | None = None,
    ) -> None:
        self._client = client
        self._simulation = simulation
        self._rank = rank
        self._step_cost = step_cost
        self._height = height or self._added_up
        self._kinds = range(len(client.kinds))
        self._gpus = range(1, len(client.kinds))
        self._first_end = 0.0  # of the time slices of what runs
        self._taken: set[int] = set()
        self._waiting_for_ram: set[int] = set()
        self._one_kind = len(client.kinds) == 1
        self._full_at_moves = -1  # no instance was free, when this many jobs had stopped

    def choose(self, now: float) -> Choice:
        """The jobs to run now, and when to choose again: the end of a time slice, or before a deadline is missed."""
        client = self._client
        simulation = self._simulation
        endangered = now >= client.safe_until_secs and simulation.may_miss_deadlines(now)
        if not endangered:
            if self._full_at_moves == client.moves:
                if now < self._first_end or (self._one_kind and self._goes_on(now)):
                    return Choice(client.running, _NO_REASONS, self._slice_end())
            elif self._full_at_moves == client.moves - 1 and now < self._first_end and self._one_kind:
                job = self._next_one()
                if job is not None:
                    return self._with(job, now)
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

    def _goes_on(self, now: float) -> bool:
        """Where all CPUs are busy and one time slice ends: gives that job another one if its project still comes
        first. The four steps would find the same, but take longer."""
        client = self._client
        running = client.running
        over = None
        first_end = now + client.period_secs
        for job in running:
            end = job.slice_end_secs
            if end <= now:
                if over is not None:
                    return False
                over = job
            elif end < first_end:
                first_end = end
        if over is None or over.project.suspended:
            return False
        mine = over.project
        costs = self._costs([job for job in running if job is not over]) if client.uneven else None
        rank, height = self._rank, self._height
        least = height(mine, mine.running - 1) if costs is None else rank(mine) + costs.get(mine.index, 0.0)
        for project in client.with_jobs[0]:
            if project is not mine and (project.waiting[0] or len(project.begun[0]) > project.running):
                if costs is None:
                    other = height(project, project.running)
                else:
                    other = rank(project) + costs.get(project.index, 0.0)
                if other <= least and not project.suspended and (other < least or project.index < mine.index):
                    return False
        over.slice_end_secs = now + client.period_secs
        self._first_end = first_end
        return True

    def _added_up(self, project: ProjectState, count: int) -> float:
        """The rank plus this many times the cost."""
        if not count:
            return self._rank(project)
        cost = total = self._step_cost(project.begun[0][0])
        for _ in range(count - 1):  # added one by one, so that rounding is the same as where jobs are chosen one by one
            total += cost
        return self._rank(project) + total

    def _next_one(self) -> Job | None:
        """Where all CPUs were busy, one job has stopped since and no time slice is over: the job that the four steps
        would add. None if it is not that simple: with limits, suspended projects, or jobs not of exactly one CPU."""
        client = self._client
        running = client.running
        if (
            client.uneven
            or client.any_suspended
            or not client.kind_active[0]
            or client.ram_bytes < NEVER
            or len(running) + 1 != client.instances[0]
        ):
            return None
        best, least = None, NEVER
        height = self._height
        for project in client.with_jobs[0]:
            if project.waiting[0] or len(project.begun[0]) > project.running:
                its_height = height(project, project.running)
                if its_height < least:
                    best, least = project, its_height
        if best is None or best.project.max_concurrent:
            return None
        if len(best.begun[0]) > best.running:
            job = next(job for job in best.begun[0] if not job.running)
        else:
            job = best.waiting[0][0]
        return None if job.app.app.max_concurrent else job

    def _with(self, job: Job, now: float) -> Choice:
        """What runs now, and that job in addition."""
        client = self._client
        running = client.running
        job.slice_end_secs = end = now + client.period_secs
        for other in running:
            if other.slice_end_secs < end:
                end = other.slice_end_secs
        self._first_end = end
        self._full_at_moves = client.moves
        return Choice(running, _FIRST_IN_RANK, self._slice_end(), job)

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
        elif free[0] <= 1e-9:  # the last one may overcommit the CPUs
            return False
        if job.app.app.working_set_bytes and self._client.ram_bytes < NEVER and not self._fits_ram(job):
            return False
        limit = job.app.app.max_concurrent
        if limit or job.project.project.max_concurrent:
            mine = sum(1 for other in self._jobs if other.project is job.project)
            same = sum(1 for other in self._jobs if other.app is job.app)
            return not (limit and same >= limit) and not 0 < job.project.project.max_concurrent <= mine
        return True

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
        if len(projects) > 1:
            costs = self._costs(self._jobs)
            heap = [
                (rank(project) + costs.get(project.index, 0.0), project.index, project)
                for project in projects
                if not project.suspended
            ]
            heapify(heap)
        else:  # there is no other rank to compare with
            heap = [(0.0, project.index, project) for project in projects if not project.suspended]
        offers: dict[int, Iterator[Job]] = {}
        while heap and free[kind] > 1e-9:
            height, index, project = heap[0]
            if index not in offers:
                offers[index] = self._offers(project, kind, now)
            offered = next(offers[index], None)
            if offered is None:
                heappop(heap)
            elif self._fits(offered):
                self._take(offered, reason)
                heapreplace(heap, (height + step_cost(offered), index, project))

    def _keep(self, kind: int, now: float) -> None:
        """Takes the running jobs whose time slice is not over."""
        jobs, free = self._jobs, self._free
        before = len(jobs)
        # Their RAM may have become less.
        must_check = before > 0 or self._client.ram_bytes < NEVER
        for job in self._client.running:
            # They fit unless something was taken for its deadline, or beside a GPU.
            if (
                job.slice_end_secs > now
                and job.kind == kind
                and not job.project.suspended
                and (not must_check or self._may_keep(job))
            ):
                free[kind] -= job.usage
                if kind:
                    free[0] -= job.cpus
                jobs.append(job)
        if self._taken:
            self._taken.update([job.id for job in jobs])
        self._reasons.extend([Reason.SLICE] * (len(jobs) - before))

    def _may_keep(self, job: Job) -> bool:
        return job.id not in self._taken and self._fits(job)

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
