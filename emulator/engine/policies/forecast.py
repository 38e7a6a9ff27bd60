"""What the round-robin simulation says of the work buffer: idle instances, saturated times and shortfalls.

"One-hour time slices are given to projects in turn" (client scheduling document): whenever an instance is free, the
project that comes first by rank gets it for a slice, or up to the end of the job, for its first job in order of arrival
that has none. A job keeps its instance until then. The rank grows by what was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from itertools import accumulate
from operator import itemgetter
from typing import Final

ENDED_SECS: Final = 1e-6  # a job with less left has ended: rounding
_first = itemgetter(0)


class SimulationResult:
    """The simulation's results, per kind; times in seconds from now.

    An instance, or a part of one, is idle while no job waits that is just too large for it. Saturated times are
    exact up to the horizon; beyond it they are a time up to which the kind is certainly saturated. They may be found
    only when asked for, which must be before anything changes.
    """

    __slots__ = ("_find_saturated", "_saturated_secs", "idle", "shortfall_secs")

    def __init__(
        self, idle: list[float], shortfall_secs: list[float], find_saturated: Callable[[], list[float]]
    ) -> None:
        self.idle = idle
        self.shortfall_secs = shortfall_secs
        self._find_saturated = find_saturated
        self._saturated_secs: list[float] | None = None

    @property
    def saturated_secs(self) -> list[float]:
        """How long all instances are busy."""
        if self._saturated_secs is None:
            self._saturated_secs = self._find_saturated()
        return self._saturated_secs


@dataclass(slots=True)
class Queue:
    """A project's jobs of one instance each, in order of arrival: how long each still runs, in seconds; the project's
    rank, and by how much it grows per second that is given to one of them."""

    lefts: list[float]
    rank: float
    growth: float


def busy_in_order(queues: list[Queue], instances: int, stop_secs: float) -> list[float]:
    """When each instance is done, the first to be done first; they may be told as busy up to `stop_secs` if they are
    longer. For jobs of one project, or jobs that end within one slice: none is put off once it has started.

    Each project's jobs are given out in their order, so sorting by the rank at which each is given out is the same as
    taking the project that comes first each time.
    """
    picks: list[tuple[float, float]] = []
    for queue in queues:
        growth = queue.growth
        ranks = accumulate([growth * left for left in queue.lefts], initial=queue.rank)
        picks += zip(ranks, queue.lefts, strict=False)
    if len(queues) > 1:
        picks.sort(key=_first)
    loads = [0.0] * instances
    for _, left in picks:
        least = loads[0]
        if least >= stop_secs:
            break
        heapreplace(loads, least + left)
    return loads


def busy_in_turns(
    queues: list[Queue], instances: int, slice_secs: float, horizon_secs: float, stop_secs: float
) -> tuple[float, float]:
    """How long all instances are busy (at most about `stop_secs`), and the shortfall up to the horizon."""
    return _Turns(queues, instances, slice_secs).simulate(horizon_secs, stop_secs)


# Per queue: its fresh jobs, the next one last; a heap of (number, left) of those whose slice is over, which came before
# all fresh ones; and how much its rank grows per second.
_Lane = tuple[list[float], list[tuple[int, float]], float]


class _Turns:
    """One simulation of `busy_in_turns`."""

    __slots__ = ("_free", "_given", "_lanes", "_ranks", "_slice_secs", "_turns")

    def __init__(self, queues: list[Queue], instances: int, slice_secs: float) -> None:
        self._slice_secs = slice_secs
        self._lanes: list[_Lane] = [(queue.lefts[::-1], [], queue.growth) for queue in queues]
        self._ranks = [queue.rank for queue in queues]
        self._turns = [(queue.rank, place) for place, queue in enumerate(queues) if queue.lefts]
        heapify(self._turns)
        self._given: list[tuple[float, int, int, float]] = []  # up to when; the queue, the job, what is left of it then
        self._free = instances

    def simulate(self, horizon_secs: float, stop_secs: float) -> tuple[float, float]:
        given = self._given
        at, saturated, shortfall = 0.0, -1.0, 0.0
        while at < stop_secs:
            self._give_out(at)
            if self._free:
                if saturated < 0.0:
                    saturated = at
                if at < horizon_secs:
                    until = given[0][0] if given else horizon_secs
                    shortfall += self._free * (min(until, horizon_secs) - at)
                if not given or at >= horizon_secs:
                    break
            else:
                self._go_on(stop_secs)
            at = given[0][0]
            self._take_back(at)
        return at if saturated < 0.0 else saturated, shortfall

    def _give_out(self, at: float) -> None:
        turns, slice_secs = self._turns, self._slice_secs
        while self._free and turns:
            rank, place = turns[0]
            fresh, begun, growth = self._lanes[place]
            number, left = heappop(begun) if begun else (-len(fresh), fresh.pop())
            secs = left if left < slice_secs else slice_secs
            heappush(self._given, (at + secs, place, number, left - secs))
            self._free -= 1
            self._ranks[place] = rank = rank + growth * secs
            if begun or fresh:
                heapreplace(turns, (rank, place))
            else:
                heappop(turns)

    def _take_back(self, at: float) -> None:
        given = self._given
        while given and given[0][0] == at:
            _, place, number, left = heappop(given)
            self._free += 1
            if left > ENDED_SECS:
                fresh, begun, _ = self._lanes[place]
                if not begun and not fresh:
                    heappush(self._turns, (self._ranks[place], place))
                heappush(begun, (number, left))

    def _go_on(self, stop_secs: float) -> None:
        """The same, as long as all instances are busy and slices end one at a time: the next slice takes the place of
        the one that ended. Nearly all slices of a forecast are given out here."""
        given, lanes, ranks, turns = self._given, self._lanes, self._ranks, self._turns
        slice_secs = self._slice_secs
        third = min(2, len(given) - 1)
        while turns:
            at, place, number, left = given[0]
            if at >= stop_secs or given[1][0] == at or given[third][0] == at:
                return
            if left > ENDED_SECS:
                fresh, begun, growth = lanes[place]
                if not begun and not fresh:
                    heappush(turns, (ranks[place], place))
                heappush(begun, (number, left))
            rank, place = turns[0]
            fresh, begun, growth = lanes[place]
            if begun:
                number, left = heappop(begun)
            else:
                number, left = -len(fresh), fresh.pop()
            if left < slice_secs:
                heapreplace(given, (at + left, place, number, 0.0))
                rank += growth * left
            else:
                heapreplace(given, (at + slice_secs, place, number, left - slice_secs))
                rank += growth * slice_secs
            ranks[place] = rank
            if begun or fresh:
                heapreplace(turns, (rank, place))
            else:
                heappop(turns)
