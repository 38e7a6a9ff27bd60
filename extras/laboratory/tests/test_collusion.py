"""Groups that collude on workunits: with a shuffled queue they gain what chance gives them, and no more."""

from __future__ import annotations

import pytest

from extras.laboratory.trials.collusion import Group, bound, collude, honest_pairs


@pytest.mark.parametrize(("ncolluders", "nhosts"), [(2, 100), (5, 100), (20, 100), (20, 400)])
@pytest.mark.parametrize("is_lazy", [False, True], ids=["who compute the rest", "who compute nothing"])
def test_a_group_gains_what_chance_gives_it(ncolluders: int, nhosts: int, is_lazy: bool) -> None:
    group = Group(ncolluders, nhosts, is_lazy=is_lazy)
    gain = collude(group, 1)
    measured = gain.for_nothing if is_lazy else gain.per_flop
    # 1 / 98, 4 / 95, 19 / 80 and 19 / 380 are the others' fractions; below half of it the measure itself would be
    # wrong.
    assert (bound(group) - 0.01) / 1.1 / 2 < measured <= bound(group)


def test_in_the_order_of_making_those_who_ask_in_turn_are_paid_for_most_of_their_jobs() -> None:
    gain = collude(Group(2, 100, is_lazy=True, is_shuffled=False, has_pairs=False), 1)
    # The comparison: half of the jobs of two, and nearly all of twenty.
    assert gain.for_nothing > 0.4
    assert collude(Group(20, 100, is_lazy=True, is_shuffled=False, has_pairs=False), 1).for_nothing > 0.9


def test_pairs_that_are_believed_no_more_lose_what_they_had_even_then() -> None:
    gain = collude(Group(2, 100, is_lazy=True, is_shuffled=False), 1)
    assert gain.npairs == 1
    # They are trusted again when a week has passed without a result of theirs, for a day.
    assert gain.for_nothing < 0.2


def test_the_same_seed_gives_the_same_gain() -> None:
    group = Group(5, 100)
    assert collude(group, 7) == collude(group, 7) != collude(group, 8)


def test_honest_pairs_are_rarely_listed_and_hardly_ever_have_to_wait_for_a_third() -> None:
    """Thirty lists of a hundred computers that ask at the same time each day, some for twenty times as many jobs."""
    listed = honest_pairs(100, 30, 1)
    assert listed.nlisted <= 3
    assert listed.nbelow == 0
