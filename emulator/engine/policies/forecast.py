"""What the round-robin simulation says of the work buffer, and its quick form for jobs that are all alike."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heapreplace

from emulator.engine.state import NEVER

ENDED_SECS = 1e-6  # a job with less left has ended: rounding


@dataclass(slots=True)
class SimulationResult:
    """The simulation's results, per kind; times in seconds from now.

    An instance, or a part of one, is idle while no job waits that is just too large for it. Saturated times are
    exact up to a slice beyond the horizon; one beyond that is told as that.
    """

    idle: list[float]
    saturated_secs: list[float]
    shortfall_secs: list[float]


@dataclass(slots=True)
class Queue:
    """A project's jobs of one instance each, in order of arrival: how long each still runs, in seconds; the project's
    rank, and by how much it grows per second that one of them runs."""

    lefts: list[float]
    rank: float
    growth: float


def saturated_in_turns(queues: list[Queue], instances: int, slice_secs: float, stop_secs: float) -> float:
    """How long all instances are busy, at most `stop_secs`; afterwards the queues have what is left.

    The jobs need one instance each. At each end of a job, and of a slice, the instances are given out anew, each to the
    project that comes first by rank, to its first job that does not have one yet.
    """
    at = 0.0
    waiting = sum([len(queue.lefts) for queue in queues]) - instances
    while waiting >= 0 and at < stop_secs:
        taken = _given_out(queues, instances, slice_secs)
        step = min([min(queue.lefts[:count]) for queue, count in zip(queues, taken, strict=True) if count])
        if waiting and step > slice_secs:
            step = slice_secs
        if step > stop_secs - at:
            step = stop_secs - at
        at += step
        for queue, count in zip(queues, taken, strict=True):
            if count:
                queue.rank += queue.growth * step * count
                ran = [left - step for left in queue.lefts[:count]]
                if min(ran) <= ENDED_SECS:
                    ran = [left for left in ran if left > ENDED_SECS]
                    waiting -= count - len(ran)
                queue.lefts[:count] = ran
    return at


def _given_out(queues: list[Queue], instances: int, slice_secs: float) -> list[int]:
    """How many instances each queue gets."""
    taken = [0] * len(queues)
    heap = [(queue.rank, place) for place, queue in enumerate(queues) if queue.lefts]
    heapify(heap)
    for _ in range(instances):
        rank, place = heap[0]
        queue = queues[place]
        taken[place] += 1
        rank = rank + queue.growth * slice_secs if taken[place] < len(queue.lefts) else NEVER
        heapreplace(heap, (rank, place))
    return taken


def saturated_in_order(lefts: list[float], instances: int) -> list[float]:
    """When each instance is done with jobs of one project, which run in order of arrival; the first to be done first.
    A job that has started is never put off, so slices make no difference."""
    loads = [0.0] * instances
    for left in lefts:
        heapreplace(loads, loads[0] + left)
    return loads
