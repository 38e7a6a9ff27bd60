"""When a batch will be done: a range, from recent grants and from the work ahead of its last job in the queue.

Its work is sent when the queue has moved on to its last job, and done when the slowest of the last jobs has come back.
The queue moves at its recent pace; the range reflects how unsteady that was, and what the batch's submitter is
guaranteed if the others submit more. It cannot foresee changes: jobs of a higher priority, or a day on which half of
the computers are switched off.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, NamedTuple

MIN_GRANTED: Final = 20
"""With fewer granted results there is no forecast."""
NSLICES: Final = 8
"""The number of slices of the period whose paces are compared."""
NDEVIATIONS: Final = 2.0
LEAST_PACE: Final = 0.25
"""The pace is never assumed to fall below this fraction of what it was."""
OFTEN: Final = 0.05
"""Lost jobs are allowed for if at least this share of such batches loses one."""


class GrantedResult(NamedTuple):
    """A recently granted result: how long ago it came, its estimated FLOPs, how long it was out."""

    ago_secs: float
    fpops: float
    turnaround_secs: float


@dataclass(frozen=True, slots=True)
class RecentResults:
    """What an app was granted in the last ``span_secs``; ``nlost``: results that were sent and came to nothing."""

    granted: Sequence[GrantedResult]
    span_secs: float
    nlost: int


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What is left of a batch: estimated FLOPs of waiting results, its own and all up to its last one.

    ``part``: its submitter's share among all recent submitters. ``out_secs``: how long each result in progress has been
    out.
    """

    fpops: float
    fpops_ahead: float
    part: float
    nunsent: int
    out_secs: Sequence[float]
    delay_bound_secs: float


class Forecast(NamedTuple):
    """Seconds from now between which the batch will most likely be done."""

    earliest_secs: float
    latest_secs: float


def forecast(lately: RecentResults, left: OpenWork) -> Forecast | None:
    """Forecast when the batch will be done; None if too little was granted recently."""
    njobs = left.nunsent + len(left.out_secs)
    if len(lately.granted) < MIN_GRANTED or lately.span_secs <= 0 or not njobs:
        return None
    turnarounds = sorted(result.turnaround_secs for result in lately.granted)
    fast, slow = _paces(lately, left.fpops_ahead)
    sent_early = left.fpops_ahead / fast
    sent_late = max(left.fpops_ahead, left.fpops / left.part) / slow
    # The slowest of these is the last: those that are out, or will be, when the last one is sent.
    nlast = min(njobs, max(1, ceil(njobs * turnarounds[len(turnarounds) // 2] / max(sent_early, 1.0))))
    has_been_out = 0.0 if left.nunsent else min(left.out_secs)
    earliest = sent_early + max(0.0, _slowest(turnarounds, nlast, 0.05) - has_been_out)
    latest = sent_late + max(0.0, _slowest(turnarounds, njobs, 0.95) - has_been_out)
    # A job that nobody reports is sent again at its deadline, and again at the next if that one is lost, too.
    lost_share, nlost = _losses(turnarounds, lately.nlost, left)
    while nlost > OFTEN:
        sent_late += left.delay_bound_secs
        latest = max(latest, sent_late + _slowest(turnarounds, ceil(nlost), 0.95) - has_been_out)
        nlost *= lost_share
    return Forecast(earliest, max(earliest, latest))


def _losses(turnarounds: Sequence[float], nlost: int, left: OpenWork) -> tuple[float, float]:
    """Return the share of jobs that come to nothing, and how many open ones will: the longer out, the likelier."""
    lost_share = nlost / (nlost + len(turnarounds))
    expected = left.nunsent * lost_share
    for secs in left.out_secs if nlost else ():
        nslower = len(turnarounds) - bisect_right(turnarounds, secs)
        expected += nlost / (nlost + nslower)
    return lost_share, expected


def _paces(lately: RecentResults, fpops: float) -> tuple[float, float]:
    """Return the FLOPS of the queue at best and at worst while it works off ``fpops``: over time they even out."""
    slice_secs = lately.span_secs / NSLICES
    sums = [0.0] * NSLICES
    for result in lately.granted:
        sums[min(int(result.ago_secs / slice_secs), NSLICES - 1)] += result.fpops
    paces = [total / slice_secs for total in sums]
    mean = statistics.fmean(paces)
    nslices = max(fpops / mean / slice_secs, 1.0)
    deviation = NDEVIATIONS * statistics.stdev(paces) * sqrt(1 / NSLICES + 1 / nslices)
    return mean + deviation, max(mean - deviation, LEAST_PACE * mean)


def _slowest(turnarounds: Sequence[float], njobs: int, chance: float) -> float:
    """Return the time within which all ``njobs`` come back with this chance."""
    return turnarounds[min(int(chance ** (1 / njobs) * len(turnarounds)), len(turnarounds) - 1)]
