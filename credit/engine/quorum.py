"""Which of a workunit's results agree. Pure, except for the comparison that it is given.

docs/explanation/validator.md says how results become valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from credit.engine.states import ValidateState

Equal = Callable[[int, int], bool]
"""Whether the outputs of two results, by their places, agree; a result that disagrees with itself is unfit."""


@dataclass(slots=True)
class Verdict:
    """``states``: the validate state of each result, in order. ``canonical``: the place of the canonical result.

    ``unfit``: places of results that failed their own check: their outputs are not there or make no sense.
    """

    states: list[ValidateState]
    canonical: int | None = None
    unfit: tuple[int, ...] = ()


def check_set(count: int, min_quorum: int, equal: Equal) -> Verdict:
    """A first decision about ``count`` results, in the order of their ids.

    The largest group of results that agree with one of them makes that one canonical, if it is of at least
    ``min_quorum`` and no other group is as large. Else what is fit is inconclusive, and more results are wanted; too
    few fit results to ask are left as they are.
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
    # Results that agree with each other have the same group; another one, of the same size, is a tie.
    is_tie = any(len(group) == len(best) and group != best for group in groups)
    if len(best) < min_quorum or is_tie:
        for place in fit:
            states[place] = ValidateState.INCONCLUSIVE
        return Verdict(states, None, unfit)
    for place in best:
        states[place] = ValidateState.VALID
    # The one that the others agree with: the first whose group this is.
    return Verdict(states, fit[groups.index(best)], unfit)


def check_late(count: int, canonical: int, equal: Equal) -> Verdict:
    """Results that came after the decision, each against the canonical one, whose place is among ``count``."""
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
    """Results that came when the canonical one was no longer there to compare with."""
    return Verdict([ValidateState.TOO_LATE] * count)


def _groups(fit: Sequence[int], equal: Equal) -> list[tuple[int, ...]]:
    """For each result, the results that agree with it, itself included."""
    agree: dict[tuple[int, int], bool] = {}
    for number, one in enumerate(fit):
        for other in fit[number + 1 :]:
            agree[one, other] = agree[other, one] = equal(one, other)
    return [tuple(other for other in fit if other == one or agree[one, other]) for one in fit]
