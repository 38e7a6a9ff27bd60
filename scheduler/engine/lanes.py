"""Lanes: separate queues within an app's queue, for jobs that only certain computers may have. Pure.

Jobs for a few must not lie where all others search: a hundred such jobs at the head of the queue, whose computers never
ask, would hide the rest from everybody. So each has a lane, a number that says who may have its jobs. A computer
searches the lanes that are for it, and lane 0, which is for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

_KIND_SHIFT: Final = 60
_CLASS_SHIFT: Final = 34
_IS_VERSION: Final = 1 << 33
FIRST_TARGETED: Final = 1 << _KIND_SHIFT
"""The lowest number of a lane that is for one computer, person or team."""
FIRST_OF_TEAMS: Final = 3 << _KIND_SHIFT
"""The lowest number of a lane that is for a team."""
FIRST_OF_SIZES: Final = 1 << 59
"""The number of the lane of the smallest size class (`engine.choice.sizes`)."""
RELIABLE: Final = 1 << 58
"""The lane of replacements that go to reliable computers first (`engine.choice.reliable`)."""
MAX_SHARED_LANES: Final = 5_000
"""The most lanes of classes and versions with waiting jobs that are read for an app."""
MAX_TARGETED_LANES: Final = 1_000
"""The most lanes of targets that are listed; if there are more, every computer searches its own."""


class LaneKind(IntEnum):
    """Whom a lane is for: computers of a class or with a version, or one target."""

    SHARED = 0
    COMPUTER = 1
    PERSON = 2
    TEAM = 3


class Requirement(NamedTuple):
    """Which versions a job may run on: the one with this id (for all its workunit's results), or those of a number; 0:
    any.
    """

    version_num: int = 0
    version_id: int = 0


ANY_VERSION: Final = Requirement()


@dataclass(frozen=True, slots=True)
class Lane:
    """Whom a job is for: the target's number, or a class of computers (`engine.hr_classes`) and a version; 0: any.

    ``is_reliable``: a replacement, which any computer may have, but reliable ones get first. ``size_class``: any
    computer may have it, but those of this speed class get it first; None: for all alike.
    """

    kind: LaneKind = LaneKind.SHARED
    target_id: int = 0
    hr_class: int = 0
    requirement: Requirement = ANY_VERSION
    is_reliable: bool = False
    size_class: int | None = None

    @property
    def number(self) -> int:
        """Return the lane's number: 0 is for all."""
        if self.kind != LaneKind.SHARED:
            return self.kind << _KIND_SHIFT | self.target_id
        if self.is_reliable:
            return RELIABLE
        if self.size_class is not None:
            return FIRST_OF_SIZES + self.size_class
        version_num, version_id = self.requirement
        return self.hr_class << _CLASS_SHIFT | (_IS_VERSION | version_id if version_id else version_num)

    @classmethod
    def of(cls, number: int) -> Lane:
        """Return the lane with this number."""
        kind = LaneKind(number >> _KIND_SHIFT)
        if kind != LaneKind.SHARED:
            return cls(kind, number & (FIRST_TARGETED - 1))
        if number == RELIABLE:
            return cls(is_reliable=True)
        if number >= FIRST_OF_SIZES:
            return cls(size_class=number - FIRST_OF_SIZES)
        value = number & (_IS_VERSION - 1)
        requirement = Requirement(0, value) if number & _IS_VERSION else Requirement(value, 0)
        return cls(hr_class=number >> _CLASS_SHIFT, requirement=requirement)


def is_for_one_person(lane: int, min_quorum: int) -> bool:
    """Whether only one person can have a workunit's results, and one is enough: they get it again if it fails, and
    nobody confirms it.
    """
    return min_quorum == 1 and FIRST_TARGETED <= lane < FIRST_OF_TEAMS


def free_lane(lane: int, version_num: int, size_class: int | None) -> int:
    """Return the lane of a workunit that is not, or no longer, bound to a class or version: that of its target, of the
    version that it asks for, or of its size.
    """
    return lane if lane >= FIRST_TARGETED else Lane(requirement=Requirement(version_num), size_class=size_class).number


def is_of_size(lane: int) -> bool:
    """Whether any computer may have its jobs, though those of its size class get them first."""
    return FIRST_OF_SIZES <= lane < FIRST_TARGETED


class Binding(NamedTuple):
    """What all results of a workunit have in common once the first was sent, and the lane that follows from it."""

    hr_class: int
    version_id: int
    lane: int


def bind(lane: int, version_num: int, hr_class: int, version_id: int) -> Binding:
    """Bind a workunit to the class and the version (0: none) of the computer that gets its first result."""
    if lane >= FIRST_TARGETED:
        return Binding(hr_class, version_id, lane)
    requirement = Requirement(0, version_id) if version_id else Requirement(version_num)
    return Binding(hr_class, version_id, Lane(hr_class=hr_class, requirement=requirement).number)


@dataclass(slots=True)
class LaneIndex:
    """The lanes of an app with waiting jobs.

    ``shared``: by class, 0 for those without. ``targeted`` None: too many to list. ``has_replacements``: for reliable
    computers; ``is_for_all_now``: they have waited for these long enough. ``sizes``: the usual FLOPs of the jobs that
    wait in each lane of a size class.
    """

    shared: dict[int, list[Lane]] = field(default_factory=dict)
    targeted: set[int] | None = field(default_factory=set)
    has_replacements: bool = False
    is_for_all_now: bool = False
    sizes: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: Iterable[int], *, has_more_targeted: bool = False) -> LaneIndex:
        index = cls(targeted=None if has_more_targeted else set())
        for number in numbers:
            if number >= FIRST_TARGETED:
                if index.targeted is not None:
                    index.targeted.add(number)
            elif number == RELIABLE:
                index.has_replacements = True
            else:
                lane = Lane.of(number)
                index.shared.setdefault(lane.hr_class, []).append(lane)
        return index

    def of_target(self, targets: Mapping[LaneKind, int]) -> list[int]:
        """Return the lanes of the computer itself, its owner and their team in which jobs wait, or may wait."""
        numbers = [Lane(kind, id_).number for kind, id_ in targets.items() if id_]
        return numbers if self.targeted is None else [number for number in numbers if number in self.targeted]

    def of_class(self, hr_class: int | None) -> list[Lane]:
        """Return the lanes of a class, and of those without any; None: all lanes, because classes do not matter."""
        if hr_class is None:
            return [lane for lanes in self.shared.values() for lane in lanes]
        return [lane for key in dict.fromkeys((0, hr_class)) for lane in self.shared.get(key, ())]

    def of_replacements(self, *, is_reliable: bool) -> list[int]:
        """Return the lane of replacements, for a computer that is reliable or not."""
        return [RELIABLE] if self.has_replacements and (is_reliable or self.is_for_all_now) else []


def has_targeted(lanes: Collection[int]) -> bool:
    return any(number >= FIRST_TARGETED for number in lanes)
