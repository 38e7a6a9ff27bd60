"""The round-robin simulation (emulator.engine.kernel.turns) for display: which job has which instance when, up to the
end of all jobs, or until the record is full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from emulator.engine.kernel import turns
from emulator.engine.kernel.queues import make_queues
from emulator.engine.table import Table
from emulator.engine.timeline.recorder import Lanes
from emulator.engine.uncompiled import column

TURNS_MAX: Final = 100_000
STRETCHES_MAX: Final = 4000
STEPS_MAX: Final = 20_000


@dataclass(slots=True)
class RecordedTurn:
    """A job has an instance, or several, between two times, in seconds from now. `lanes` counts the instances of all
    kinds; a CPU job for which there was no whole CPU has no lane.
    """

    project: int
    number: int
    lanes: tuple[int, ...]
    begin_secs: float
    end_secs: float


class RecordedTurns:
    """The simulation of the present jobs of a table."""

    def __init__(self, t: Table, now: float, present: list[bool]) -> None:
        q = make_queues(t, now, TURNS_MAX)
        self.is_cut = not turns.record(q, STEPS_MAX)  # the record was full
        self.lanes: list[tuple[int, int]] = []  # kind and number within it
        self._stretches: list[RecordedTurn] = []
        self._by_kind: list[Lanes] = []
        # By end and number: the kind, usage and lanes of jobs with instances.
        self._given: list[tuple[float, int, int, float, tuple[int, ...]]] = []
        for kind, is_there in enumerate(present):
            count = int(t.kinds[kind]["instances"]) if is_there else 0
            self._by_kind.append(Lanes(len(self.lanes), count))
            self.lanes += [(kind, number) for number in range(count)]
        self._first: dict[int, float] = {}
        self._last: dict[int, RecordedTurn] = {}
        self._ended: set[int] = set()
        projects, rows = q.jobs["project"].tolist(), q.jobs["row"].tolist()
        numbers = column(t.jobs, "id", t.run[0]["jobs"]).tolist()
        names = ("job", "is_last", "begin_secs", "end_secs")
        recorded = q.turns[: q.head[0]["turns"]]
        for i, is_last, begin_secs, end_secs in zip(*(recorded[name].tolist() for name in names), strict=True):
            job = t.jobs[rows[i]]
            self._draw(projects[i], numbers[rows[i]], job["kind"], float(job["usage"]), begin_secs, end_secs)
            if is_last:
                self._ended.add(numbers[rows[i]])
            if len(self._stretches) > STRETCHES_MAX:
                self.is_cut = True
                break

    def _draw(self, project: int, number: int, kind: int, usage: float, begin_secs: float, end_secs: float) -> None:
        """Assigns a job instances that are free by then."""
        while self._given and self._given[0][0] <= begin_secs:
            _, _, other_kind, other_usage, held = heappop(self._given)
            self._by_kind[other_kind].release(held, other_usage)
        lanes = self._by_kind[kind].allocate(usage)
        heappush(self._given, (end_secs, number, kind, usage, lanes))
        self._first.setdefault(number, begin_secs)
        last = self._last.get(number)
        if last is not None and last.end_secs == begin_secs and last.lanes == lanes:
            last.end_secs = end_secs
        else:
            self._last[number] = stretch = RecordedTurn(project, number, lanes, begin_secs, end_secs)
            self._stretches.append(stretch)

    def rows(self) -> Iterator[tuple[int, float, float, int, int]]:
        """Lane, begin, end, project and job of each stretch; a job on several instances has a row for each."""
        for stretch in self._stretches:
            for lane in stretch.lanes:
                yield lane, stretch.begin_secs, stretch.end_secs, stretch.project, stretch.number

    def begin_and_end(self, number: int) -> tuple[float | None, float | None]:
        """When a job would first run, and when it would end; None for times beyond the record."""
        end_secs = self._last[number].end_secs if number in self._ended else None
        return self._first.get(number), end_secs
