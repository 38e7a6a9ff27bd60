"""The results of a run: the timeline in columns, the figures of merit, and the reason for each decision.

Columns are arrays of numbers, one entry per row. There are two records of time: *blocks*, one row per stretch in which
a job ran unchanged on an instance, exact but only for the first `MAX_BLOCKS` rows; and *bins*, a fixed number of equal
parts of the run, which account for every instance-second of it however long it is.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from emulator.engine.timeline.stretches import Stretch

Floats = npt.NDArray[np.float64]

MAX_BLOCKS: Final = 1_000_000
MAX_DECISIONS: Final = 200_000
BINS: Final = 2048
NO_LANE: Final = -1


class HostState(IntEnum):
    """The computer's availability: states of `Timeline.states`."""

    COMPUTING = 0  # all processors may compute
    NO_GPU = 1  # CPUs only
    INACTIVE = 2  # on, but nothing may compute
    OFF = 3
    OUTSIDE_HOURS = 4  # on, but nothing may compute: for the reason of that name
    IN_USE = 5
    ON_BATTERIES = 6
    EXCLUSIVE_APP = 7


def _doubles() -> array[float]:
    return array("d")


def _longs() -> array[int]:
    return array("q")


def _shorts() -> array[int]:
    return array("i")


@dataclass(slots=True)
class Blocks:
    """Stretches of running. `lane` counts all instances of all kinds (see Timeline.lanes); a job on several
    instances has a row for each. `usage` is the part of the lane it has (a fraction, or less when CPUs are
    overcommitted). The CPU use of a GPU job is a row of lane NO_LANE.
    """

    start_secs: array[float] = field(default_factory=_doubles)
    end_secs: array[float] = field(default_factory=_doubles)
    lane: array[int] = field(default_factory=_shorts)
    project: array[int] = field(default_factory=_shorts)
    job: array[int] = field(default_factory=_longs)
    usage: array[float] = field(default_factory=_doubles)
    by_deadline: array[int] = field(default_factory=lambda: array("b"))  # 1: chosen for its deadline
    complete: bool = True  # False: there were more rows than are kept

    def __len__(self) -> int:
        return len(self.start_secs)


@dataclass(slots=True)
class Bins:
    """The run in equal parts: `busy[kind, project, bin]` instance-seconds, `off[kind, bin]` instance-seconds in which
    the kind could not compute. The rest of `instances * width` is idle.
    """

    width_secs: float
    busy: Floats
    off: Floats
    instances: Floats  # per kind


@dataclass(slots=True)
class Rpcs:
    """RPCs: project, request, jobs sent and jobs reported. `answered` 0: server down."""

    at_secs: array[float] = field(default_factory=_doubles)
    project: array[int] = field(default_factory=_shorts)
    asked_secs: array[float] = field(default_factory=_doubles)  # over all kinds
    got: array[int] = field(default_factory=_shorts)
    reported: array[int] = field(default_factory=_shorts)
    answered: array[int] = field(default_factory=lambda: array("b"))


@dataclass(slots=True)
class Misses:
    """Jobs that missed their deadline, when that became certain."""

    at_secs: array[float] = field(default_factory=_doubles)
    project: array[int] = field(default_factory=_shorts)
    job: array[int] = field(default_factory=_longs)
    late_secs: array[float] = field(default_factory=_doubles)


@dataclass(slots=True)
class Levels:
    """Sampled at equal steps (after the first change at or after each): work in the buffer per kind in
    instance-seconds, and each project's standing (REC or debt). One array per kind, one per project.
    """

    at_secs: array[float] = field(default_factory=_doubles)
    buffer_secs: list[array[float]] = field(default_factory=list)
    standing: list[array[float]] = field(default_factory=list)


@dataclass(slots=True)
class Timeline:
    """The whole run. Lists by project have one entry per project of the scenario, in its order."""

    duration_secs: float
    kinds: tuple[str, ...]
    lanes: tuple[tuple[str, int], ...]  # (kind, number within the kind) of each lane
    projects: tuple[str, ...]
    blocks: Blocks
    bins: Bins
    rpcs: Rpcs
    misses: Misses
    levels: Levels
    state_from_secs: array[float]  # the host's states, each until the next begins
    states: array[int]


class DecisionKind(IntEnum):
    """The subject of a decision."""

    RUN = 0
    STOP = 1
    ASK = 2
    SERVER = 3
    END = 4


@dataclass(slots=True)
class Decisions:
    """The reason for each action, in order. `amount` is a time in seconds, for the reasons that have one.

    Only those within `from_secs`..`to_secs` of the run are recorded, and at most MAX_DECISIONS: the same scenario and
    seed run again with another window shows the others. `dropped` counts those left out.
    """

    from_secs: float = 0.0
    to_secs: float = float("inf")
    at_secs: array[float] = field(default_factory=_doubles)
    kind: array[int] = field(default_factory=lambda: array("b"))
    reason: array[int] = field(default_factory=lambda: array("b"))
    project: array[int] = field(default_factory=_shorts)
    job: array[int] = field(default_factory=_longs)  # -1: about no job
    processor: array[int] = field(default_factory=lambda: array("b"))  # kind of processor
    amount: array[float] = field(default_factory=_doubles)
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.at_secs)


@dataclass(frozen=True, slots=True)
class Figures:
    """The five figures of merit and the normalised share violation (docs/explanation/emulator.md has the formulas)."""

    wasted: float
    idle: float
    share_violation: float
    share_violation_normalised: float
    monotony: float
    rpcs_per_job: float


@dataclass(frozen=True, slots=True)
class ProjectResult:
    """The work of one project. FLOP are counted at the peak of the devices that its jobs occupied."""

    name: str
    share: float  # the fraction of all work that it was entitled to (emulator.engine.entitlements)
    got_fraction: float  # its fraction of all FLOP used
    used_flop: float
    wasted_flop: float
    instance_secs: tuple[float, ...]  # per kind
    jobs: int  # met and late
    met: int  # reported by their deadline
    late: int  # finished or reported after it, or neither by the end of the run
    sent: int  # received from the server
    rpcs: int
    failed: int = 0  # neither met nor late


@dataclass(slots=True)
class Result:
    """A run's outcome."""

    policy: str
    seed: int
    days: float
    figures: Figures
    projects: tuple[ProjectResult, ...]
    decisions: Decisions
    timeline: Timeline | None  # None if not recorded
    stretches: tuple[Stretch, ...]  # what could have run when
    # Unfinished jobs past their deadline: project, job, seconds since then.
    overdue: tuple[tuple[int, int, float], ...] = ()
    names: dict[int, str] = field(default_factory=dict)  # of the jobs present at the start, if they have one
