"""Size classes: jobs of several sizes, each for the computers whose speed suits it. Pure.

A census sorts an app's computers by speed into classes of equal size; class 0 is the slowest. A job may name the class
that it is made for. Computers of this class get it first, others when their own class has no jobs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from scheduler.engine.lanes import Lane


class Census(NamedTuple):
    """The speeds at which the classes after the first begin, and how many computers each class has."""

    limits: list[float]
    nhosts: list[int]


def take_census(speeds: Collection[float], nclasses: int) -> Census:
    """Find the speeds at which classes begin: i/n of the computers are slower than the limit of the i-th of n classes.

    With fewer computers than classes there are no limits, and all are in the first class.
    """
    ordered = sorted(speeds)
    is_enough = len(ordered) >= nclasses
    limits = [ordered[len(ordered) * n // nclasses] for n in range(1, nclasses)] if is_enough else []
    nhosts = Counter(class_of(speed, limits) for speed in ordered)
    return Census(limits, [nhosts[n] for n in range(nclasses)])


def class_of(speed: float, limits: Sequence[float]) -> int:
    """Return the class of a computer with this speed: its average FLOPS, including the time that it is off."""
    return bisect_right(limits, speed)


def in_order(own: int, lanes: Collection[int], limits: Sequence[float]) -> list[int]:
    """Return the lanes of size classes in the order in which a computer of class ``own`` gets their jobs.

    ``lanes``: those with waiting jobs. Its own lane comes first, then those of smaller jobs, which only cost a fast
    computer a few more requests, and last those of larger jobs, which a slow computer may return late. The fastest
    computers also serve the classes above theirs, since nobody else does: such jobs exist if the number of classes was
    lowered, or raised since the last census.
    """
    of_jobs = {Lane.of(lane).size_class or 0 for lane in lanes}
    if limits and own == len(limits):
        own = max(own, *of_jobs)
    classes = sorted(of_jobs - {own})
    smaller, larger = [size for size in classes if size < own], [size for size in classes if size > own]
    return [Lane(size_class=size).number for size in (own, *reversed(smaller), *larger)]
