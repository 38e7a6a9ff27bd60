"""Which of a workunit's results agree. Pure, except for the comparison that it is given.

docs/explanation/validator.md says how results become valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from credit.engine.states import ValidateState

Equal = Callable[[int, int], bool]
"""Whether the outputs of two results, by their positions, agree; a result that disagrees with itself is unfit."""


@dataclass(slots=True)
class Verdict:
    """The validate state of each result, in order, and the position of the canonical result, if one was chosen.

    ``unfit``: positions of results that failed their own check: their outputs are missing or make no sense.
    """

    states: list[ValidateState]
    canonical: int | None = None
    unfit: tuple[int, ...] = ()


def check_set(count: int, min_quorum: int, equal: Equal) -> Verdict:
    """Make a first decision about ``count`` results, in the order of their ids.

    The canonical result is the one that the largest group agrees with, if the group has at least ``min_quorum`` results
    and no other is as large. Otherwise fit results are inconclusive, and more are needed; if there are too few fit
    results to compare, they are left as they are.
    """
    fit = [place for place in range(count) if equal(place, place)]
    unfit = tuple(place for place in range(count) if place not in fit)
    states = [ValidateState.INVALID] * count
    if len(fit) < min_quorum:
        for place in fit:
            states[place] = ValidateState.INIT
        return Verdict(states, None, unfit)
    groups = _groups(fit, equal)
    best = max(groups, key=len)
    # Results that agree with each other have the same group; another group of the same size is a tie.
    is_tie = any(len(group) == len(best) and group != best for group in groups)
    if len(best) < min_quorum or is_tie:
        for place in fit:
            states[place] = ValidateState.INCONCLUSIVE
        return Verdict(states, None, unfit)
    for place in best:
        states[place] = ValidateState.VALID
    # The one that the others agree with: the first with this group.
    return Verdict(states, fit[groups.index(best)], unfit)


def check_late(count: int, canonical: int, equal: Equal) -> Verdict:
    """Compare results that came after the decision with the canonical one, whose position is among ``count``."""
    states: list[ValidateState] = []
    unfit = []
    for place in range(count):
        if place == canonical:
            states.append(ValidateState.VALID)
        elif not equal(place, place):
            states.append(ValidateState.INVALID)
            unfit.append(place)
        else:
            states.append(ValidateState.VALID if equal(canonical, place) else ValidateState.INVALID)
    return Verdict(states, canonical, tuple(unfit))


def check_too_late(count: int) -> Verdict:
    """Decide results that came when the canonical one was no longer there to compare with."""
    return Verdict([ValidateState.TOO_LATE] * count)


def _groups(fit: Sequence[int], equal: Equal) -> list[tuple[int, ...]]:
    """Return, for each result, the results that agree with it, including itself."""
    agree: dict[tuple[int, int], bool] = {}
    for number, one in enumerate(fit):
        for other in fit[number + 1 :]:
            agree[one, other] = agree[other, one] = equal(one, other)
    return [tuple(other for other in fit if other == one or agree[one, other]) for one in fit]
