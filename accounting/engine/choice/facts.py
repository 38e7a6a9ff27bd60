"""The facts for the choice of projects, and its outcome (accounting/engine/choice/rules.py). Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import log
from typing import Any, Final, NamedTuple

from portal.wire import keywords as choice_keywords

CPU: Final = "CPU"
# Largest share of one project; clients take larger ones, but nobody needs them.
MAX_SHARE: Final = 1e6
# A share of 0 means work only when there is no other; in the draw it is as good as none.
LEAST_WEIGHT: Final = 1e-6


class Wish(NamedTuple):
    """What a volunteer wants of a project: whether it is picked by hand, and its share (None: the project's
    default).
    """

    is_chosen: bool
    resource_share: float | None


class TroubleKind(StrEnum):
    NO_WORK = "no_work"
    FAILING = "failing"
    ENDED = "ended"


class Trouble(NamedTuple):
    """A reason to pass over a project for a while: since when, and for which processor type ("": for all)."""

    kind: TroubleKind
    processor_type: str
    since: dt.datetime


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """A project as input for the choice.

    ``share``: the operator's. ``keywords``: weight of each, above 0 to 1. ``versions``: (platform, processor type) of
    its programs, platform "" for all; a project without any counts as running everywhere. ``boosts``: the factors on
    its share, on CPUs and on GPUs: above 1 because it recently got too little, below 1 because it got too much.
    """

    id: int
    share: float
    is_active: bool = True
    is_down: bool = False
    keywords: Mapping[int, float] = field(default_factory=dict)
    versions: frozenset[tuple[str, str]] = frozenset()
    boosts: tuple[float, float] = (1.0, 1.0)
    troubles: tuple[Trouble, ...] = ()
    # Computed once for all computers: the keywords including their parents; the weight on computers without GPUs and on
    # others; the points for the share, and for the boost.
    kin: frozenset[int] = field(init=False)
    weights: tuple[float, float] = field(init=False)
    base: float = field(init=False)
    needs: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        on_cpu, on_gpu = self.boosts
        object.__setattr__(self, "kin", choice_keywords.kin(self.keywords))
        object.__setattr__(
            self, "weights", (max(LEAST_WEIGHT, self.share * on_cpu), max(LEAST_WEIGHT, self.share * on_gpu))
        )
        object.__setattr__(self, "base", log(max(LEAST_WEIGHT, self.share)))
        object.__setattr__(self, "needs", (log(on_cpu), log(on_gpu)))


@dataclass(frozen=True, slots=True)
class Volunteer:
    """The owner's settings for all computers. ``without_account``: projects where computers cannot be attached yet."""

    wishes: Mapping[int, Wish] = field(default_factory=dict)
    yes: frozenset[int] = frozenset()
    no: frozenset[int] = frozenset()
    without_account: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Computer:
    """One computer. ``types``: the processor types that it has and may use; ``platform``: "" if unknown.

    ``current``: its present projects. ``excluded``: projects that its owner does not want on it. ``excluded_types``:
    types that it may not use for a project. ``paused``: projects that should stay, but do nothing at present.
    ``troubles``: its own troubles with projects, as far as they still count.
    """

    id: int
    types: tuple[str, ...] = (CPU,)
    platform: str = ""
    current: frozenset[int] = frozenset()
    excluded: frozenset[int] = frozenset()
    excluded_types: Mapping[int, frozenset[str]] = field(default_factory=dict)
    paused: frozenset[int] = frozenset()
    troubles: Mapping[int, tuple[Trouble, ...]] = field(default_factory=dict)


def device_types(devices: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return BOINC's names of the types of these devices, without repeats."""
    return tuple(dict.fromkeys(str(d["type"]) for d in devices if d.get("type") and d.get("count")))


class Verdict(StrEnum):
    """Why a project is chosen, or why not."""

    BY_HAND = "by hand"
    LIKED = "liked"
    EQUAL = "as good as others"
    COVERS_TYPE = "covers a processor type"
    SECOND_PROJECT = "so that there is more than one"
    # from here on: not chosen
    OUTRANKED = "others came first"
    LESS_LIKED = "others are liked more"
    PASSED_OVER = "passed over"
    NOT_PICKED = "not picked by hand"
    VETOED = "vetoed"
    EXCLUDED = "not on this computer"
    UNFIT = "no program for this computer"
    NO_ACCOUNT = "no account"
    DOWN = "down"
    ENDED = "takes no computers"


class Score(NamedTuple):
    """How one project was rated: ``share`` is its resource share, None if it is not chosen.

    The volunteer's likes come first: ``liking``, 0 to 2, by the keywords ``because`` (for a veto: those that cause it).
    Among equals points count: ``base`` (of the operator's share), ``need`` (for what it recently got too little),
    ``stay`` (if the computer has it already) and ``draw`` (chance, the same for a computer at all times). ``covers``:
    the processor types that it was chosen for.
    """

    project_id: int
    verdict: Verdict
    share: float | None = None
    liking: float = 0.0
    because: tuple[int, ...] = ()
    base: float = 0.0
    need: float = 0.0
    stay: float = 0.0
    draw: float = 0.0
    covers: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()

    @property
    def points(self) -> float:
        return self.base + self.need + self.stay + self.draw


@dataclass(frozen=True, slots=True)
class Choice:
    """Resource shares of the chosen projects by id, and the score of every project."""

    shares: dict[int, float]
    scores: tuple[Score, ...]
    is_by_hand: bool = False
