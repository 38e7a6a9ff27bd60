"""When a batch will be done: a range, from what was granted lately and from what the queue has before its last job.

Its work is sent when the queue has moved on to its last job, and done when the slowest of the last jobs has come back.
The queue moves at the pace of lately; the range has how unsteady that was, and what the batch's submitter gets for sure
if the others submit more. It knows nothing of what has not happened yet: jobs of a higher priority, or a day on which
half of the computers are switched off.
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
"""Parts of the time that was looked at, whose paces are compared."""
NDEVIATIONS: Final = 2.0
LEAST_PACE: Final = 0.25
"""The pace is never believed to fall below this part of what it was."""
OFTEN: Final = 0.05
"""Lost jobs are allowed for if at least this part of such batches loses one."""


class Granted(NamedTuple):
    """A result that was granted credit lately: how long ago it came, its estimated FLOPs, how long it was out."""

    ago_secs: float
    fpops: float
    turnaround_secs: float


@dataclass(frozen=True, slots=True)
class RecentResults:
    """What was granted to an app in the last ``span_secs``; ``nlost``: results that were sent and came to nothing."""

    granted: Sequence[Granted]
    span_secs: float
    nlost: int


@dataclass(frozen=True, slots=True)
class Open:
    """What is left of a batch. Estimated FLOPs of waiting results: its own, and all up to its last one.

    ``part``: its submitter's share among all who have submitted lately. ``out_secs``: for how long each that was sent
    has been out.
    """

    fpops: float
    fpops_ahead: float
    part: float
    nunsent: int
    out_secs: Sequence[float]
    delay_bound_secs: float


class Forecast(NamedTuple):
    """Seconds from now between which the batch will be done, in most cases."""

    earliest_secs: float
    latest_secs: float


def forecast(lately: RecentResults, left: Open) -> Forecast | None:
    """None: too little was granted lately to say."""
    njobs = left.nunsent + len(left.out_secs)
    if len(lately.granted) < MIN_GRANTED or lately.span_secs <= 0 or not njobs:
        return None
    turnarounds = sorted(each.turnaround_secs for each in lately.granted)
    fast, slow = _paces(lately, left.fpops_ahead)
    sent_early = left.fpops_ahead / fast
    sent_late = max(left.fpops_ahead, left.fpops / left.part) / slow
    # Of these the slowest is the last: those that are out, or will be, when the last one is sent.
    nlast = min(njobs, max(1, ceil(njobs * turnarounds[len(turnarounds) // 2] / max(sent_early, 1.0))))
    has_been_out = 0.0 if left.nunsent else min(left.out_secs)
    earliest = sent_early + max(0.0, _slowest(turnarounds, nlast, 0.05) - has_been_out)
    latest = sent_late + max(0.0, _slowest(turnarounds, njobs, 0.95) - has_been_out)
    # A job that nobody reports is sent again at its deadline, and at that of the next, if it is lost, too.
    lost_share, nlost = _losses(turnarounds, lately.nlost, left)
    while nlost > OFTEN:
        sent_late += left.delay_bound_secs
        latest = max(latest, sent_late + _slowest(turnarounds, ceil(nlost), 0.95) - has_been_out)
        nlost *= lost_share
    return Forecast(earliest, max(earliest, latest))


def _losses(turnarounds: Sequence[float], nlost: int, left: Open) -> tuple[float, float]:
    """The share of jobs that come to nothing, and how many of these: those that are out for long are likelier to."""
    lost_share = nlost / (nlost + len(turnarounds))
    expected = left.nunsent * lost_share
    for secs in left.out_secs if nlost else ():
        nslower = len(turnarounds) - bisect_right(turnarounds, secs)
        expected += nlost / (nlost + nslower)
    return lost_share, expected


def _paces(lately: RecentResults, fpops: float) -> tuple[float, float]:
    """FLOPS of the queue at best and at worst, as long as it needs for so much: over a long time they even out."""
    slice_secs = lately.span_secs / NSLICES
    sums = [0.0] * NSLICES
    for each in lately.granted:
        sums[min(int(each.ago_secs / slice_secs), NSLICES - 1)] += each.fpops
    paces = [its / slice_secs for its in sums]
    mean = statistics.fmean(paces)
    nslices = max(fpops / mean / slice_secs, 1.0)
    deviation = NDEVIATIONS * statistics.stdev(paces) * sqrt(1 / NSLICES + 1 / nslices)
    return mean + deviation, max(mean - deviation, LEAST_PACE * mean)


def _slowest(turnarounds: Sequence[float], njobs: int, chance: float) -> float:
    """The time within which all ``njobs`` come back with this chance."""
    return turnarounds[min(int(chance ** (1 / njobs) * len(turnarounds)), len(turnarounds) - 1)]
