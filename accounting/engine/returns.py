"""Old totals that come back: which earlier ones are kept, and when a client is back at them (accounting rules, rule 4).

Earlier totals (W in the rules) are those from which a client fell, or from which it jumped back to older ones. New work
arrives in reports along the way from the last reset (B), old totals in one step. Pure: no clock, no Django.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.states import ProjectState

EARLIER_KEPT: Final = 16

Earlier = tuple[Totals, ...]


def shortfall(reported: Totals, earlier: Totals) -> Totals:
    """Return how far a client is below earlier totals."""
    return earlier.minus(reported).larger(NO_WORK)


def not_reached(reported: Totals, earlier: Iterable[Totals]) -> Earlier:
    """Return the totals that a client is below, in at least one kind of amount."""
    return tuple(totals for totals in earlier if min(reported.minus(totals)) < 0)


def with_last(earlier: Earlier, last: Totals) -> Earlier:
    """Return these and the last totals, shortest first.

    If there are too many, one is dropped whose next longer one is at most twice as long as its next shorter one: a
    client that starts from zero and comes back to it is past halfway to the longer one. If there is none, each is over
    twice as long as the second before it, so the shortest is less than 1/256 of the longest, and is dropped.
    """
    if last == NO_WORK or last in earlier:
        return earlier
    ordered = sorted((*earlier, last), key=lambda totals: (totals.run_time, totals.njobs))
    if len(ordered) > EARLIER_KEPT:
        near = (k for k in range(1, EARLIER_KEPT) if ordered[k + 1].run_time <= 2 * ordered[k - 1].run_time)
        del ordered[next(near, 0)]
    return tuple(ordered)


def is_return(totals: Totals, reported: Totals, earlier: Totals, restart: Totals) -> bool:
    """Whether this step is longer than all since the reset together, and longer than half of the remaining way.

    A client with less left than it did since the reset is simply working its way there.
    """
    lacks, done, step = _way(reported, earlier, restart, totals)
    return lacks > done and step > done and 2 * step > lacks


def smallest_remaining(row: ProjectState) -> int:
    """Return the least run time that a client is short of earlier totals, among those still more than halfway off; or
    0.
    """
    if row.reported is None or row.restart is None:
        return 0
    done = row.reported.minus(row.restart).run_time
    ways = (shortfall(row.reported, totals).run_time for totals in row.earlier)
    return min((way for way in ways if way > done), default=0)


def _way(reported: Totals, earlier: Totals, restart: Totals, totals: Totals) -> tuple[int, int, int]:
    """Return the shortfall, the work since the reset and the new step: as run time, or as jobs if only they fell.

    Where run time fell and was done again, jobs may still be missing: they may take longer now.
    """
    lacks, done, step = shortfall(reported, earlier), reported.minus(restart), totals.minus(reported)
    if lacks.run_time or shortfall(restart, earlier).run_time:
        return lacks.run_time, done.run_time, step.run_time
    return lacks.njobs, done.njobs, step.njobs
