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
    ranks = [queue.rank for queue in queues]
    fresh = [queue.lefts[::-1] for queue in queues]  # the next one last
    # Jobs whose slice is over: they came before all fresh ones of their queue. A heap of (number, left) per queue.
    begun: list[list[tuple[int, float]]] = [[] for _ in queues]
    turns = [(queue.rank, place) for place, queue in enumerate(queues) if queue.lefts]
    heapify(turns)
    given: list[tuple[float, int, int, float]] = []  # up to when; the queue, the job in it, what is left of it then
    free = instances
    at, saturated, shortfall = 0.0, -1.0, 0.0
    while at < stop_secs:
        while free and turns:
            rank, place = turns[0]
            waiting, again = fresh[place], begun[place]
            if again:
                number, left = heappop(again)
            else:
                number, left = -len(waiting), waiting.pop()
            secs = left if left < slice_secs else slice_secs
            heappush(given, (at + secs, place, number, left - secs))
            free -= 1
            ranks[place] = rank = rank + queues[place].growth * secs
            if again or waiting:
                heapreplace(turns, (rank, place))
            else:
                heappop(turns)
        if free:
            if saturated < 0.0:
                saturated = at
            if at < horizon_secs:
                until = given[0][0] if given else horizon_secs
                shortfall += free * (min(until, horizon_secs) - at)
            if not given or at >= horizon_secs:
                break
        at = given[0][0]
        while given and given[0][0] == at:
            _, place, number, left = heappop(given)
            free += 1
            if left > ENDED_SECS:
                again = begun[place]
                if not again and not fresh[place]:
                    heappush(turns, (ranks[place], place))
                heappush(again, (number, left))
    return at if saturated < 0.0 else saturated, shortfall
