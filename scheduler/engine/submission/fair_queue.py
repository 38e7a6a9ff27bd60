"""Weighted fair queueing: positions of a submission's jobs in an app's queue, so that submitters share the computers.

A queue is a line of positions that is processed from its head, and each job draws its position when it is created. The
jobs of a submitter follow one another: a submission begins where the submitter's previous one ends, or at the head if
that has been passed, and its length is its estimated FLOPs divided by the submitter's share. So every submitter's work
is equally dense for their share wherever they have any; a submitter without waiting jobs gives way to the others, and
returns at the head. Work that is cancelled before it is sent is taken off the end. Within its stretch a job's position
is random: copies of a workunit must not lie side by side.

Start-time fair queueing (Goyal, Vin, Cheng 1996), with the head as its virtual time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

FPOPS_PER_PLACE: Final = 1e12
"""A smaller job counts as this much: sending it is work, too."""
LONGEST_JOB: Final = 1e9
"""The most positions that a job takes up: its position is a number of 64 bits."""
LAST_PLACE: Final = 2**62
"""The last position at which a submission may begin, so that submissions without limits stay within 64 bits."""
LEAST_SHARE: Final = 0.01
MOST_SHARE: Final = 100.0
MIN_WINDOW: Final = 256
"""Even a small submission is shuffled over the positions of this many usual jobs."""
PART_OF_QUEUE: Final = 16
"""It is also shuffled over this fraction of a long queue: the longer the queue, the further apart are copies."""


class QueueKey(NamedTuple):
    """One of an app's queues, by priority and the lane of its size class; lane 0: jobs without a size class."""

    priority: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue. ``head`` and ``last``: the positions of its first and last job; None: the queue is empty, and begins at
    the next job's position, ``newest``.
    """

    newest: int
    head: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The jobs of a submission lie from ``start`` to before ``start + width``, its submitter's next from ``end``, which
    may be fractional: the many small submissions of a large share take less than a position each.
    """

    start: int
    width: int
    end: float


def places(fpops: float) -> float:
    """Return how much of a queue a job of these estimated FLOPs takes up, for a share of 1."""
    return min(max(fpops / FPOPS_PER_PLACE, 1.0), LONGEST_JOB)


def window(queue: Queue, end_before: float | None, fpops: Sequence[float], share: float) -> Window:
    """Return where results of these estimated FLOPs lie. ``end_before``: the end of the submitter's previous
    submission.

    If the queue is empty, earlier ends no longer count.
    """
    head = queue.newest if queue.head is None else queue.head
    begin = head if queue.head is None or end_before is None else max(head, end_before)
    taken = sum(map(places, fpops))
    length = taken / share
    least = max(MIN_WINDOW * taken / len(fpops), ((queue.last or head) - head) / PART_OF_QUEUE)
    return Window(min(int(begin), LAST_PLACE), min(int(max(length, least)) + 1, LAST_PLACE // 2), begin + length)
