"""The forecast of the work buffer: for jobs on CPUs and GPUs, on parts of an instance or several, and with limits on
jobs at once.

"One-hour time slices are given to projects in turn" (client scheduling document): whenever an instance is free, the
project that comes first by rank gets it for a slice, or up to the end of the job, for its first job in order of arrival
that has none. A job keeps its instance until then. The rank grows by what was given.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from operator import attrgetter
from typing import Final

from emulator.engine.client import Client
from emulator.engine.policies.forecast import ENDED_SECS, Rank, SimulationResult
from emulator.engine.state import Job, ProjectState

NONE_FREE: Final = 1e-9
_id = attrgetter("id")


class RoundRobinTurns:
    """One simulation, from now on. `rank` and `unit` as for RoundRobinSimulation."""

    def __init__(
        self,
        client: Client,
        rank: Callable[[ProjectState], Rank],
        unit: Callable[[ProjectState], float],
        now: float,
        slice_secs: float,
    ) -> None:
        self._client = client
        self._slice_secs = slice_secs
        kinds = range(len(client.kinds))
        self._order = [*kinds[1:], 0]
        self._free = list(client.instances)
        # Per kind and project: the jobs without an instance in order of arrival; how long each of all still runs.
        self._ready: list[dict[int, list[Job]]] = [{} for _ in kinds]
        self._left: dict[int, float] = {}
        self._given: list[tuple[float, int, Job]] = []  # up to when; a heap
        self._is_last: dict[int, bool] = {}
        self._ranks: dict[int, float] = {}
        self._units: dict[int, float] = {}
        self.steps = 0
        for project in client.projects:
            if not project.unfinished or project.suspended:
                continue
            self._is_last[project.index], self._ranks[project.index] = rank(project)
            self._units[project.index] = unit(project)
            for kind in kinds:
                jobs = sorted([*project.begun[kind], *project.waiting[kind]], key=_id)
                if jobs:
                    self._ready[kind][project.index] = jobs
                    for job in jobs:
                        self._left[job.id] = job.left_secs(now) / client.up_fraction[kind]

    def forecast(self, horizon_secs: float, stop_secs: float) -> SimulationResult:
        """Simulates up to the horizon, and for kinds that are saturated there on to `stop_secs`."""
        kinds = range(len(self._free))
        saturated, shortfall = [stop_secs] * len(kinds), [0.0] * len(kinds)
        idle_now: list[float] = []
        at = 0.0
        while at < stop_secs and (at < horizon_secs or stop_secs in saturated):
            idle = self._give_out(at)
            idle_now = idle_now or idle
            until = self._given[0][0] if self._given else stop_secs
            for kind in kinds:
                if idle[kind] > NONE_FREE:
                    saturated[kind] = min(saturated[kind], at)
                    shortfall[kind] += idle[kind] * max(0.0, min(until, horizon_secs) - at)
            at = until
            self._take_back(at)
            self.steps += 1
        return SimulationResult(idle_now, shortfall, saturated)

    def _give_out(self, at: float) -> list[float]:
        """Gives out what is free, GPUs first; returns how much of each kind stays idle."""
        free, ready = self._free, self._ready
        cramped = [
            kind for kind in self._order if free[kind] > NONE_FREE and ready[kind] and self._give_out_kind(kind, at)
        ]
        return [0.0 if left < 0.0 or kind in cramped else left for kind, left in enumerate(free)]

    def _give_out_kind(self, kind: int, at: float) -> bool:
        """Returns whether a job waits that is only too large for what is free. The last CPU job may take more CPUs than
        there are."""
        free, ranks, ready = self._free, self._ranks, self._ready[kind]
        turns = [(self._is_last[index], ranks[index], index, 0) for index in ready]
        heapify(turns)
        too_large: list[Job] = []
        limited = self._client.limited
        while turns and free[kind] > NONE_FREE:
            is_last, rank, index, place = turns[0]
            jobs = ready[index]
            job = jobs[place]
            if limited and self._at_limit(job):
                place += 1  # the next one may be of another application
            elif kind and job.usage > free[kind] + NONE_FREE:
                too_large.append(job)
                place += 1
            else:
                del jobs[place]
                rank = self._give(job, at)
            if place < len(jobs):
                heapreplace(turns, (is_last, rank, index, place))
            else:
                heappop(turns)
                if not jobs:
                    del ready[index]
        return bool(too_large) and not all([self._at_limit(job) for job in too_large])

    def _give(self, job: Job, at: float) -> float:
        """Returns its project's rank from then on."""
        self._free[job.kind] -= job.usage
        if job.kind:
            self._free[0] -= job.cpus
        secs = min(self._left[job.id], self._slice_secs)
        self._left[job.id] -= secs
        heappush(self._given, (at + secs, job.id, job))
        index = job.project.index
        self._ranks[index] += self._units[index] * job.counted_flops * secs
        return self._ranks[index]

    def _take_back(self, at: float) -> None:
        given, free = self._given, self._free
        while given and given[0][0] <= at:
            _, _, job = heappop(given)
            free[job.kind] += job.usage
            if job.kind:
                free[0] += job.cpus
            if self._left[job.id] > ENDED_SECS:
                insort(self._ready[job.kind].setdefault(job.project.index, []), job, key=_id)

    def _at_limit(self, job: Job) -> bool:
        """Whether as many jobs of its application, or of its project, run as may run at once."""
        of_app, of_project = job.app.app.max_concurrent, job.project.project.max_concurrent
        if of_app and sum([other.app is job.app for _, _, other in self._given]) >= of_app:
            return True
        return 0 < of_project <= sum([other.project is job.project for _, _, other in self._given])
