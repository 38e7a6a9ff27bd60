"""The forecast of the work buffer (see rr_turns) with a record of which job has which instance when, for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from emulator.engine.policies.forecast import ENDED_SECS, SimulationResult
from emulator.engine.policies.rr_turns import RoundRobinTurns
from emulator.engine.state import Job
from emulator.engine.timeline.recorder import Lanes

STRETCHES_MAX: Final = 4000
STEPS_MAX: Final = 20_000


@dataclass(slots=True)
class Stretch:
    """A job has an instance, or several, between two times, in seconds from now. `lanes` counts the instances of all
    kinds; a CPU job for which there was no whole CPU has no lane."""

    job: Job
    lanes: tuple[int, ...]
    begin_secs: float
    end_secs: float


class RecordedTurns(RoundRobinTurns):
    """The same simulation, recorded up to the end of all jobs, or until the record is full."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_cut = False  # the record was full
        self.lanes: list[tuple[int, int]] = []  # kind and number within it
        self._stretches: list[Stretch] = []
        self._lanes: list[Lanes] = []
        for kind, is_there in enumerate(self._client.present):
            count = int(self._client.instances[kind]) if is_there else 0
            self._lanes.append(Lanes(len(self.lanes), count))
            self.lanes += [(kind, number) for number in range(count)]
        self._held: dict[int, tuple[int, ...]] = {}  # by job
        self._first: dict[int, float] = {}
        self._last: dict[int, Stretch] = {}

    def run(self, horizon_secs: float) -> SimulationResult:
        """Simulates up to the horizon as `forecast` does, and goes on."""
        self._at = 0.0
        simulated = self.forecast(horizon_secs, horizon_secs)
        while not self.is_cut:
            self._give_out(self._at)
            if not self._given:
                break
            self._take_back(self._given[0][0])
            self.steps += 1
            self.is_cut = len(self._stretches) > STRETCHES_MAX or self.steps > STEPS_MAX
        return simulated

    def rows(self) -> Iterator[tuple[int, float, float, int, int]]:
        """Lane, begin, end, project and job of each stretch; a job on several instances has a row for each."""
        for stretch in self._stretches:
            for lane in stretch.lanes:
                yield lane, stretch.begin_secs, stretch.end_secs, stretch.job.project.index, stretch.job.id

    def begin_and_end(self, job: Job) -> tuple[float | None, float | None]:
        """When it would first run, and when it would end; None for what the full record does not say."""
        if job.id not in self._last:
            return None, None
        end_secs = self._last[job.id].end_secs if self._left[job.id] <= ENDED_SECS else None
        return self._first[job.id], end_secs

    def _give(self, job: Job, at: float) -> float:
        until = at + min(self._left[job.id], self._slice_secs)
        self._held[job.id] = lanes = self._lanes[job.kind].allocate(job.usage)
        self._first.setdefault(job.id, at)
        last = self._last.get(job.id)
        if last is not None and last.end_secs == at and last.lanes == lanes:
            last.end_secs = until
        else:
            self._last[job.id] = stretch = Stretch(job, lanes, at, until)
            self._stretches.append(stretch)
        return super()._give(job, at)

    def _take_back(self, at: float) -> None:
        self._at = at
        for until, _, job in self._given:
            if until <= at:
                self._lanes[job.kind].release(self._held.pop(job.id), job.usage)
        super()._take_back(at)
