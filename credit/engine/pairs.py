"""Detection of volunteers who confirm each other's results more often than chance would explain. Pure.

Chance decides who gets the copies of a workunit. So another volunteer's expected share of the other results of one's
workunits equals their share of all results: a binomial distribution, whose upper tail is the chance of a pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p
from typing import Final

MIN_TOGETHER: Final = 3
"""Fewer workunits in common say nothing, whatever their chance."""
LISTED_BELOW: Final = 0.01
"""Pairs are listed if the chance that any of all pairs meets as often is below this."""
LEAST_CHANCE: Final = 1e-300
MAX_HOLDERS: Final = 8
"""A workunit with this many agreeing results waits for no more, whoever computed them."""

Pair = tuple[int, int]
"""The ids of two volunteers, the lower one first."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """How often two volunteers had valid results of the same workunit.

    ``nresults`` and ``nothers`` of each: their valid results, and those that others had of the same workunits.
    """

    pair: Pair
    together: int
    nresults: tuple[int, int]
    nothers: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A pair, how often it met, how often it would by chance, and the chance that any of all pairs meets as often."""

    meeting: Meeting
    expected: float
    chance: float


def binomial_tail(at_least: int, ntrials: int, p: float) -> float:
    """Return the chance that at least this many of ``ntrials`` independent trials succeed, each with chance ``p``."""
    if at_least <= 0 or p >= 1:
        return 1.0
    if at_least > ntrials or p <= 0:
        return 0.0
    first = lgamma(ntrials + 1) - lgamma(at_least + 1) - lgamma(ntrials - at_least + 1)
    first += at_least * log(p) + (ntrials - at_least) * log1p(-p)
    # The terms from the first on, as multiples of it.
    total = term = 1.0
    for nsuccesses in range(at_least, ntrials):
        term *= (ntrials - nsuccesses) / (nsuccesses + 1) * p / (1 - p)
        total += term
        if term < total * 1e-17 or total > 1e250:
            break
    return min(1.0, exp(min(0.0, first + log(total))))


def suspicions(meetings: Iterable[Meeting], nresults: int, nvolunteers: int) -> list[Suspicion]:
    """Return the pairs whose chance is below ``LISTED_BELOW``, smallest first.

    ``nresults``, ``nvolunteers``: the number of valid results of workunits with more than one, and of their volunteers.
    """
    npairs = nvolunteers * (nvolunteers - 1) / 2
    suspected = []
    for meeting in meetings:
        if meeting.together < MIN_TOGETHER:
            continue
        tails = []
        for own, other in ((0, 1), (1, 0)):
            share = meeting.nresults[other] / max(1, nresults - meeting.nresults[own])
            tails.append((share * meeting.nothers[own], meeting.nothers[own], share))
        expected, ntrials, share = max(tails)
        if meeting.together <= expected:
            continue
        chance = min(1.0, binomial_tail(meeting.together, ntrials, share) * npairs)
        if chance < LISTED_BELOW:
            suspected.append(Suspicion(meeting, expected, max(chance, LEAST_CHANCE)))
    return sorted(suspected, key=lambda suspicion: (suspicion.chance, suspicion.meeting.pair))


def waits_for_another(holders: Sequence[int], pairs: Collection[Pair]) -> bool:
    """Whether none of the volunteers whose results agree is independent: each is in one of ``pairs`` with another."""
    if not 2 <= len(holders) < MAX_HOLDERS:
        return False
    return all(any((min(one, other), max(one, other)) in pairs for other in holders if other != one) for one in holders)
