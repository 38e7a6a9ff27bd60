"""Size classes: jobs of several sizes, each for the computers whose speed suits it. Pure.

A census sorts the computers of an app by speed into classes of the same number each, 0 the slowest. A job may name the
class that it is made for. Its computers get it first; others do when their own class has no jobs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import NamedTuple

from scheduler.engine.lanes import Lane


class Census(NamedTuple):
    """The speeds at which the classes after the first begin, and how many computers were counted."""

    limits: list[float]
    nhosts: int


def take_census(speeds: Collection[float], nclasses: int) -> Census:
    """Sort computers into classes: the i-th of n begins at the speed that i/n of them do not reach.

    With fewer computers than classes there are no limits: all are of the first class.
    """
    ordered = sorted(speeds)
    if len(ordered) < nclasses:
        return Census([], len(ordered))
    return Census([ordered[len(ordered) * n // nclasses] for n in range(1, nclasses)], len(ordered))


def class_of(speed: float, limits: Sequence[float]) -> int:
    """The class of a computer of this speed, in FLOPS that it does in all, also while it is off."""
    return bisect_right(limits, speed)


def in_order(own: int, lanes: Collection[int], limits: Sequence[float]) -> list[int]:
    """The lanes of sizes, of which ``lanes`` have jobs, in the order in which a computer of a class gets jobs of them.

    Its own comes first. Then smaller jobs, as they only cost a fast computer some requests more; last larger ones,
    which a slow one may be late with. The fastest computers also stand for the classes above theirs, as nobody else
    does: there are jobs of these if the number of classes was lowered, or raised since the last census.
    """
    of_jobs = {Lane.of(lane).size_class or 0 for lane in lanes}
    if limits and own == len(limits):
        own = max(own, *of_jobs)
    classes = sorted(of_jobs - {own})
    smaller, larger = [size for size in classes if size < own], [size for size in classes if size > own]
    return [Lane(size_class=size).number for size in (own, *reversed(smaller), *larger)]
