"""Weighted fair queueing: where in an app's queue the jobs of a submission lie, so that submitters share the computers.

A queue is a line of places that is worked off from its head, and each job draws its place when it is made. The jobs of
a submitter follow one another: a submission begins where the submitter's one before ends, or at the head if that has
been passed, and is as long as its estimated FLOPs, divided by the submitter's share. So every submitter's work is
equally dense for their share wherever they have any; whoever has none waiting gives way to the others, and begins at
the head when they come back. What is cancelled before it is sent is taken off the end. Within its stretch each job is
anywhere: copies of a workunit must not lie side by side.

Start-time fair queueing (Goyal, Vin, Cheng 1996), with the head as its virtual time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

FPOPS_PER_PLACE: Final = 1e12
"""A smaller job counts as this much: handing it out is work, too."""
LONGEST_JOB: Final = 1e9
"""The most places that a job takes: its place is a number of 64 bits."""
LAST_PLACE: Final = 2**62
"""Of submissions that begin: what has been submitted without limits must not lead beyond 64 bits."""
LEAST_SHARE: Final = 0.01
MOST_SHARE: Final = 100.0
MIN_WINDOW: Final = 256
"""Jobs of the usual size over whose places even a small submission is shuffled."""
PART_OF_QUEUE: Final = 16
"""It is shuffled over this part of a long queue, too: the longer the queue, the better are copies kept apart."""


class QueueOf(NamedTuple):
    """One of an app's queues, by priority and the lane of its size class; lane 0: jobs without a size class."""

    priority: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue. ``head`` and ``last``: the places of its first and last job; None: the queue is empty, and begins at the
    next job's place, ``newest``.
    """

    newest: int
    head: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The jobs of a submission lie from ``start`` to before ``start + width``, its submitter's next from ``end``, which
    has fractions: the many small submissions of a large share take less than a place each.
    """

    start: int
    width: int
    end: float


def places(fpops: float) -> float:
    """How much of a queue a job of these estimated FLOPs takes, for a share of 1."""
    return min(max(fpops / FPOPS_PER_PLACE, 1.0), LONGEST_JOB)


def window(queue: Queue, end_before: float | None, fpops: Sequence[float], share: float) -> Window:
    """Where results of these estimated FLOPs lie. ``end_before``: that of the submitter's submission before.

    With an empty queue nobody has an end any more.
    """
    head = queue.newest if queue.head is None else queue.head
    begin = head if queue.head is None or end_before is None else max(head, end_before)
    taken = sum(map(places, fpops))
    length = taken / share
    least = max(MIN_WINDOW * taken / len(fpops), ((queue.last or head) - head) / PART_OF_QUEUE)
    return Window(min(int(begin), LAST_PLACE), min(int(max(length, least)) + 1, LAST_PLACE // 2), begin + length)
