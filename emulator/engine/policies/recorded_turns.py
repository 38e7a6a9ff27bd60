"""The forecast of the work buffer (emulator.engine.kernel.turns) with a record for people of which job has which
instance when."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from emulator.engine.kernel.queues import NONE_FREE, Queues
from emulator.engine.kernel.turns import ENDED_SECS
from emulator.engine.table import Table
from emulator.engine.timeline.recorder import Lanes

STRETCHES_MAX: Final = 4000
STEPS_MAX: Final = 20_000


@dataclass(slots=True)
class RecordedTurn:
    """A job has an instance, or several, between two times, in seconds from now. `lanes` counts the instances of all
    kinds; a CPU job for which there was no whole CPU has no lane."""

    place: int
    lanes: tuple[int, ...]
    begin_secs: float
    end_secs: float


class RecordedTurns:
    """The simulation of these queues, recorded up to the end of all jobs, or until the record is full."""

    def __init__(self, t: Table, q: Queues, present: list[bool], slice_secs: float) -> None:
        self._slice_secs = slice_secs
        self._kind, self._project, self._app = q.kind.tolist(), q.project.tolist(), q.app.tolist()
        self._usage, self._cpus, self._left = q.usage.tolist(), q.cpus.tolist(), q.left.tolist()
        self._cost = (q.unit[q.project] * q.counted_flops).tolist()  # of a second, for the project's rank
        self._ranks, self._is_last = q.rank.tolist(), q.is_last.tolist()
        self._limits = q.app_limit.tolist(), q.project_limit.tolist()
        self._numbers = t.jobs[q.row]["id"].tolist()
        self._places = {number: place for place, number in enumerate(self._numbers)}
        self._free = t.kinds["instances"].tolist()
        self._order = [*range(1, len(self._free)), 0]
        # Per kind and project: the jobs without an instance in order of arrival.
        self._ready: list[dict[int, list[int]]] = [{} for _ in self._free]
        for place, (kind, project) in enumerate(zip(self._kind, self._project, strict=True)):
            self._ready[kind].setdefault(project, []).append(place)
        self._given: list[tuple[float, int]] = []  # up to when which job has an instance; a heap
        self.is_cut = False  # the record was full
        self.lanes: list[tuple[int, int]] = []  # kind and number within it
        self._stretches: list[RecordedTurn] = []
        self._lanes: list[Lanes] = []
        for kind, is_there in enumerate(present):
            count = int(self._free[kind]) if is_there else 0
            self._lanes.append(Lanes(len(self.lanes), count))
            self.lanes += [(kind, number) for number in range(count)]
        self._held: dict[int, tuple[int, ...]] = {}  # by job
        self._first: dict[int, float] = {}
        self._last: dict[int, RecordedTurn] = {}

    def run(self) -> None:
        """Simulates."""
        at, steps = 0.0, 0
        while not self.is_cut:
            for kind in self._order:
                if self._free[kind] > NONE_FREE:
                    self._give_out(kind, at)
            if not self._given:
                break
            at = self._given[0][0]
            self._take_back(at)
            steps += 1
            self.is_cut = len(self._stretches) > STRETCHES_MAX or steps > STEPS_MAX

    def rows(self) -> Iterator[tuple[int, float, float, int, int]]:
        """Lane, begin, end, project and job of each stretch; a job on several instances has a row for each."""
        for stretch in self._stretches:
            project, number = self._project[stretch.place], self._numbers[stretch.place]
            for lane in stretch.lanes:
                yield lane, stretch.begin_secs, stretch.end_secs, project, number

    def begin_and_end(self, number: int) -> tuple[float | None, float | None]:
        """When a job would first run, and when it would end; None for what the full record does not say."""
        place = self._places.get(number, -1)
        if place not in self._last:
            return None, None
        return self._first[place], self._last[place].end_secs if self._left[place] <= ENDED_SECS else None

    def _give_out(self, kind: int, at: float) -> None:
        """Gives out what is free of a kind. The last CPU job may take more CPUs than there are."""
        free, ready = self._free, self._ready[kind]
        turns = [(self._is_last[project], self._ranks[project], project, 0) for project in ready]
        heapify(turns)
        while turns and free[kind] > NONE_FREE:
            is_last, rank, project, place = turns[0]
            jobs = ready[project]
            job = jobs[place]
            if self._is_at_limit(job) or (kind and self._usage[job] > free[kind] + NONE_FREE):
                place += 1  # the next one may be of another application, or smaller
            else:
                del jobs[place]
                rank = self._give(job, at)
            if place < len(jobs):
                heapreplace(turns, (is_last, rank, project, place))
            else:
                heappop(turns)
                if not jobs:
                    del ready[project]

    def _give(self, job: int, at: float) -> float:
        """Returns its project's rank from then on."""
        kind, project = self._kind[job], self._project[job]
        self._free[kind] -= self._usage[job]
        if kind:
            self._free[0] -= self._cpus[job]
        secs = min(self._left[job], self._slice_secs)
        self._left[job] -= secs
        heappush(self._given, (at + secs, job))
        self._held[job] = lanes = self._lanes[kind].allocate(self._usage[job])
        self._first.setdefault(job, at)
        last = self._last.get(job)
        if last is not None and last.end_secs == at and last.lanes == lanes:
            last.end_secs = at + secs
        else:
            self._last[job] = stretch = RecordedTurn(job, lanes, at, at + secs)
            self._stretches.append(stretch)
        self._ranks[project] += self._cost[job] * secs
        return float(self._ranks[project])

    def _take_back(self, at: float) -> None:
        while self._given and self._given[0][0] <= at:
            _, job = heappop(self._given)
            kind = self._kind[job]
            self._free[kind] += self._usage[job]
            if kind:
                self._free[0] += self._cpus[job]
            self._lanes[kind].release(self._held.pop(job), self._usage[job])
            if self._left[job] > ENDED_SECS:
                insort(self._ready[kind].setdefault(self._project[job], []), job)

    def _is_at_limit(self, job: int) -> bool:
        """Whether as many jobs of its application, or of its project, run as may run at once."""
        of_app, of_project = self._limits
        if not of_app:
            return False
        app, project = self._app[job], self._project[job]
        same = sum([self._app[other] == app for _, other in self._given])
        mine = sum([self._project[other] == project for _, other in self._given])
        return bool(0 < of_app[app] <= same or 0 < of_project[project] <= mine)
