"""Record a run as it progresses: numbers are collected in a list and folded into columns and bins in batches."""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from emulator.engine.state import Job
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import (
    BINS,
    MAX_BLOCKS,
    MAX_DECISIONS,
    NO_LANE,
    Bins,
    Blocks,
    DecisionKind,
    Decisions,
    Floats,
    HostState,
    Levels,
    Misses,
    Rpcs,
    Timeline,
)

COLUMNS: Final = 8
MAX_DECISION_NUMBERS: Final = 7 * MAX_DECISIONS
BATCH_NUMBERS: Final = 20_000 * COLUMNS
MAX_BIN_CELLS: Final = 4_000_000
MAX_RPCS: Final = 1_000_000
MAX_STATES: Final = 1_000_000
SAMPLES: Final = 512
MAX_LEVEL_CELLS: Final = 1_000_000
NO_LANES: Final = (NO_LANE,)


class Lanes:
    """The instances of one kind of processor, on which running jobs are drawn.

    Lanes are numbered from `first` on; a job gets the lowest free one.
    """

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.count = count
        self._free = list(range(first, first + count))
        heapify(self._free)
        self._shared: dict[int, float] = {}  # load of lanes that hold parts of an instance

    def allocate(self, usage: float) -> tuple[int, ...]:
        """Assigns lanes to a job: one per whole instance and one, shared, for the rest. NO_LANE if all are taken (CPUs
        may be overcommitted).
        """
        free = self._free
        if usage == 1.0:
            return (heappop(free),) if free else NO_LANES
        whole = int(usage + 1e-9)
        rest = usage - whole
        if len(free) < whole:
            return NO_LANES
        taken = [heappop(free) for _ in range(whole)]
        if rest > 1e-9:
            lane = self._share(rest)
            if lane == NO_LANE:
                for lane in taken:
                    heappush(free, lane)
                return NO_LANES
            taken.append(lane)
        return tuple(taken)

    def load(self, lane: int) -> float:
        """How much of a shared lane is taken."""
        return self._shared[lane]

    def restore(self, free: list[int], shared: dict[int, float]) -> None:
        """Restores a state: the free lanes, and the load of shared ones."""
        self._free = free
        heapify(self._free)
        self._shared = shared

    def _share(self, part: float) -> int:
        for lane in sorted(self._shared):
            if self._shared[lane] + part <= 1.0 + 1e-9:
                self._shared[lane] += part
                return lane
        if not self._free:
            return NO_LANE
        lane = heappop(self._free)
        self._shared[lane] = part
        return lane

    def release(self, lanes: tuple[int, ...], usage: float) -> None:
        """Frees what `allocate` gave for the same usage."""
        if lanes is NO_LANES:
            return
        if usage == 1.0:
            heappush(self._free, lanes[0])
            return
        whole = int(usage + 1e-9)
        for lane in lanes[:whole]:
            heappush(self._free, lane)
        for lane in lanes[whole:]:
            self._shared[lane] -= usage - whole
            if self._shared[lane] < 1e-9:
                del self._shared[lane]
                heappush(self._free, lane)


class Sums:
    """Seconds of use per row and bin, from stretches (start, end, row, usage): exact, in fixed memory.

    A stretch adds its usage to all later bins from its start and takes it away from its end, so each costs two
    additions however long it is; `totals` adds up.
    """

    def __init__(self, rows: int, bins: int, width_secs: float) -> None:
        self._bins = bins
        self._width_secs = width_secs
        self._within = np.zeros(rows * bins)
        self._after = np.zeros(rows * bins)

    def add(self, start: Floats, end: Floats, row: npt.NDArray[np.int64], usage: Floats) -> None:
        """Adds stretches; all columns have the same length."""
        for at, sign in ((start, 1.0), (end, -1.0)):
            bin_ = np.minimum((at / self._width_secs).astype(np.int64), self._bins - 1)
            place = row * self._bins + bin_
            part = sign * usage
            size = len(self._within)
            self._within += np.bincount(place, part * ((bin_ + 1) * self._width_secs - at), size)
            self._after += np.bincount(place, part * self._width_secs, size)

    def totals(self) -> Floats:
        """Instance-seconds, (rows, bins); tiny negative residues of rounding are cut off."""
        after = self._after.reshape(-1, self._bins)
        carried = np.zeros_like(after)
        np.cumsum(after[:, :-1], axis=1, out=carried[:, 1:])
        return np.maximum(self._within.reshape(-1, self._bins) + carried, 0.0)


class Recorder:
    """Records a run's timeline."""

    def __init__(
        self, duration_secs: float, kinds: tuple[str, ...], instances: list[int], projects: tuple[str, ...]
    ) -> None:
        self._duration_secs = duration_secs
        self._kinds = kinds
        self._instances = instances
        self._projects = projects
        bins = max(16, min(BINS, MAX_BIN_CELLS // (len(kinds) * len(projects))))
        self._width_secs = duration_secs / bins
        self._busy = Sums(len(kinds) * len(projects), bins, self._width_secs)
        self._rows: list[float] = []  # each stretch: the columns of Blocks and the kind, one after the other
        self._blocks = Blocks()
        self._rpcs = Rpcs()
        self._misses = Misses()
        samples = max(16, min(SAMPLES, MAX_LEVEL_CELLS // len(projects)))
        self.sample_secs = duration_secs / samples
        self._levels = Levels(
            buffer_secs=[array("d") for _ in kinds],
            standing=[array("d") for _ in projects],
        )
        self._state_from = array("d")
        self._states = array("b")
        self._off = Sums(len(kinds), bins, self._width_secs)
        self._state = HostState.COMPUTING
        self._since = 0.0
        self._missing = [0] * len(kinds)  # per kind: instances that are missing at the moment

    def block(self, job: Job, start: float, end: float) -> None:
        """Records a stretch in which a job ran unchanged."""
        lanes = job.lanes
        kind = job.kind
        # A throttled job has its lane to itself, whatever fraction of the time it runs.
        part_run = job.rate / job.pace
        project, number, by_deadline = job.project.index, job.id, job.by_deadline
        rows = self._rows
        if len(lanes) == 1:
            rows += (start, end, lanes[0], project, number, job.usage * part_run, by_deadline, kind)
        else:
            left = job.usage
            for lane in lanes:
                part = min(left, 1.0)
                left -= part
                rows += (start, end, lane, project, number, part * part_run, by_deadline, kind)
        if kind and job.cpus:
            rows += (start, end, NO_LANE, project, number, job.cpus, by_deadline, 0)
        if len(rows) >= BATCH_NUMBERS:
            self._fold()

    def _fold(self) -> None:
        """Adds the rows to the bins and, while there is room, to the blocks."""
        if not self._rows:
            return
        # All whole numbers among them are exact as doubles.
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, COLUMNS)
        self._rows.clear()
        self._add_blocks(rows)

    def _add_blocks(self, rows: Floats) -> None:
        start, end, lane, project, job, usage, by_deadline, kind = np.ascontiguousarray(rows.T)
        self._busy.add(start, end, (kind * len(self._projects) + project).astype(np.int64), usage)
        blocks = self._blocks
        room = MAX_BLOCKS - len(blocks)
        if room < len(start):
            blocks.complete = False
        for column, stored in (
            (start, blocks.start_secs),
            (end, blocks.end_secs),
            (lane, blocks.lane),
            (project, blocks.project),
            (job, blocks.job),
            (usage, blocks.usage),
            (by_deadline, blocks.by_deadline),
        ):
            stored.frombytes(column[:room].astype(stored.typecode).tobytes())

    def add_rows(self, blocks: Floats, rpcs: Floats, misses: Floats) -> None:
        """Adds rows of stretches, RPCs and late jobs, with the columns of `block`, `rpc` and `miss`."""
        self._fold()
        if len(blocks):
            self._add_blocks(blocks)
        for at, project, asked, got, reported, answered in rpcs.tolist():
            self.rpc(at, int(project), asked, int(got), int(reported), bool(answered))
        room = MAX_RPCS - len(self._misses.at_secs)
        for at, project, job, late_secs in misses[:room].tolist():
            self._misses.at_secs.append(at)
            self._misses.project.append(int(project))
            self._misses.job.append(int(job))
            self._misses.late_secs.append(late_secs)

    def rpc(self, now: float, project: int, asked_secs: float, got: int, reported: int, answered: bool) -> None:
        """Records one RPC."""
        rpcs = self._rpcs
        if len(rpcs.at_secs) < MAX_RPCS:
            rpcs.at_secs.append(now)
            rpcs.project.append(project)
            rpcs.asked_secs.append(asked_secs)
            rpcs.got.append(got)
            rpcs.reported.append(reported)
            rpcs.answered.append(answered)

    def miss(self, now: float, job: Job) -> None:
        """Records a late job."""
        misses = self._misses
        if len(misses.at_secs) < MAX_RPCS:
            misses.at_secs.append(now)
            misses.project.append(job.project.index)
            misses.job.append(job.id)
            misses.late_secs.append(now - job.deadline_secs)

    def state(self, now: float, state: HostState) -> None:
        """Records the computer's state from now on."""
        self._book_off(now)
        self._since = now
        self._state = state
        if len(self._states) < MAX_STATES:
            self._state_from.append(now)
            self._states.append(state)

    def present(self, now: float, kind: int, count: int) -> None:
        """Records how many processors of a kind exist from now on; the others count as off."""
        self._book_off(now)
        self._since = now
        self._missing[kind] = self._instances[kind] - count

    def _book_off(self, now: float) -> None:
        if now <= self._since:
            return
        off = list(self._missing)
        if self._state != HostState.COMPUTING:
            first = 1 if self._state == HostState.NO_GPU else 0
            off[first:] = self._instances[first:]
        kinds = [kind for kind, count in enumerate(off) if count]
        if kinds:
            self._off.add(
                np.full(len(kinds), self._since),
                np.full(len(kinds), now),
                np.array(kinds, dtype=np.int64),
                np.array([off[kind] for kind in kinds], dtype=np.float64),
            )

    def levels(self, now: float, buffer_secs: list[float], standing: list[float]) -> None:
        """Records a sample of the buffer and of the projects' ranks."""
        levels = self._levels
        levels.at_secs.append(now)
        for column, value in zip(levels.buffer_secs, buffer_secs, strict=True):
            column.append(value)
        for column, value in zip(levels.standing, standing, strict=True):
            column.append(value)

    def timeline(self) -> Timeline:
        """Returns the whole recording, once the run is over."""
        self._fold()
        self._book_off(self._duration_secs)
        kinds, projects = len(self._kinds), len(self._projects)
        busy = self._busy.totals()
        return Timeline(
            self._duration_secs,
            self._kinds,
            tuple((kind, i) for kind, count in zip(self._kinds, self._instances, strict=True) for i in range(count)),
            self._projects,
            self._blocks,
            Bins(
                self._width_secs,
                busy.reshape(kinds, projects, -1),
                self._off.totals(),
                np.array(self._instances, dtype=np.float64),
            ),
            self._rpcs,
            self._misses,
            self._levels,
            self._state_from,
            self._states,
        )


class DecisionLog:
    """Records the decisions within a window as one list of numbers; `decisions` makes columns of it."""

    def __init__(self, from_secs: float, to_secs: float) -> None:
        self.from_secs = from_secs
        self.to_secs = to_secs
        self._rows: list[float] = []  # the columns of results.Decisions, one decision after the other
        self.dropped = 0

    def __len__(self) -> int:
        """The number of decisions recorded so far."""
        return len(self._rows) // 7

    def add(
        self,
        now: float,
        kind: DecisionKind,
        reason: Reason,
        project: int,
        job: int = -1,
        processor: int = 0,
        amount: float = 0.0,
    ) -> None:
        """Records one decision; see results.Decisions."""
        rows = self._rows
        if self.from_secs <= now <= self.to_secs and len(rows) < MAX_DECISION_NUMBERS:
            rows += (now, kind, reason, project, job, processor, amount)
        else:
            self.dropped += 1

    def add_rows(self, rows: Floats, dropped: int) -> None:
        """Adds decisions of the window, with the columns of `add`; `dropped` were outside it."""
        room = (MAX_DECISION_NUMBERS - len(self._rows)) // 7
        self._rows += rows[:room].ravel().tolist()
        self.dropped += dropped + max(0, len(rows) - room)

    def decisions(self) -> Decisions:
        """The columns."""
        made = Decisions(self.from_secs, self.to_secs, dropped=self.dropped)
        columns: list[array[Any]]
        columns = [made.at_secs, made.kind, made.reason, made.project, made.job, made.processor, made.amount]
        for place, column in enumerate(columns):
            numbers = np.array(self._rows[place :: len(columns)])  # a list would be converted one by one
            column.frombytes(numbers.astype(column.typecode).tobytes())
        return made
