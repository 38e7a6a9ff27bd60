"""Pairs who confirm each other: the chance of it, who is listed, and which workunits wait for somebody else."""

from __future__ import annotations

from math import log10

import pytest

from credit.engine.pairs import Meeting, Pair, binomial_tail, suspicions, waits_for_another


@pytest.mark.parametrize(
    ("at_least", "ntrials", "p", "chance"),
    [
        (0, 10, 0.5, 1.0),
        (11, 10, 0.5, 0.0),
        (1, 10, 0.0, 0.0),
        (3, 10, 1.0, 1.0),
        # (1024 - 1 - 10 - 45) / 1024
        (3, 10, 0.5, 968 / 1024),
        (10, 10, 0.1, 1e-10),
        # 1 - 0.999^1000
        (1, 1000, 0.001, 0.632304575229),
        # 190 × 0.01² × 0.99^18 + 1140 × 0.01³ × 0.99^17 + …
        (2, 20, 0.01, 0.0168593375),
        # All 40 with somebody who has a fiftieth of the results: 50^-40.
        (40, 40, 0.02, 10 ** (-40 * log10(50))),
        # Half of a million trials, or more.
        (500_000, 1_000_000, 0.5, 0.50039894),
        (600_000, 1_000_000, 0.5, 0.0),
    ],
)
def test_the_tail_of_the_binomial_distribution(at_least: int, ntrials: int, p: float, chance: float) -> None:
    assert binomial_tail(at_least, ntrials, p) == pytest.approx(chance, rel=1e-6, abs=1e-300)


def meeting(pair: Pair, together: int, one: int, other: int) -> Meeting:
    """With one other result in each of their workunits."""
    return Meeting(pair, together, (one, other), (one, other))


def test_pairs_that_meet_as_chance_has_them_are_not_listed() -> None:
    # 100 volunteers have 100 results each: two of them meet 100 × 100 / 9,900 = 1.01 times, and some of 4,950 pairs 6.
    assert suspicions([meeting((1, 2), 1, 100, 100), meeting((3, 4), 6, 100, 100)], 10_000, 100) == []


def test_those_that_meet_more_often_are_listed_with_the_odds_the_least_likely_first() -> None:
    pairs = suspicions([meeting((1, 2), 9, 100, 100), meeting((3, 4), 40, 40, 40)], 10_000, 100)
    assert [each.meeting.pair for each in pairs] == [(3, 4), (1, 2)]
    # Of 40 results, 40 / 9,960 are with the other by chance: (40 / 9,960)^40 × 4,950 pairs.
    assert pairs[0].expected == pytest.approx(0.1606, rel=1e-3)
    assert log10(pairs[0].chance) == pytest.approx(40 * log10(40 / 9960) + log10(4950), rel=1e-9)
    assert pairs[1].chance == pytest.approx(binomial_tail(9, 100, 100 / 9900) * 4950)


@pytest.mark.parametrize(("together", "nlisted"), [(8, 0), (9, 1)])
def test_who_meets_as_often_in_one_of_a_hundred_lists_is_the_limit(together: int, nlisted: int) -> None:
    # Of 90 others, 100 / 9,900 are the other's: the chances of 8 and 9 are 0.02 and 0.0018, for 4,950 pairs.
    assert len(suspicions([Meeting((1, 2), together, (100, 100), (90, 90))], 10_000, 100)) == nlisted


def test_two_who_are_nearly_alone_meet_as_often_as_they_must() -> None:
    # All results are of two volunteers, or nearly so: anyone who has another copy is the other one.
    assert suspicions([meeting((1, 2), 500, 500, 500)], 1000, 2) == []
    assert suspicions([meeting((1, 2), 495, 500, 500)], 1010, 3) == []


def test_a_few_workunits_say_nothing() -> None:
    assert suspicions([meeting((1, 2), 2, 2, 2)], 1_000_000, 10_000) == []


@pytest.mark.parametrize(
    ("holders", "pairs", "waits"),
    [
        ([1, 2], {(1, 2)}, True),
        ([2, 1], {(1, 2)}, True),
        ([1, 2], {(1, 3)}, False),
        ([1, 2, 3], {(1, 2)}, False),
        ([1, 2, 3], {(1, 2), (2, 3)}, True),
        ([1, 2, 3, 4], {(1, 2), (3, 4)}, True),
        ([1], {(1, 2)}, False),
        ([1, 1], {(1, 2)}, False),
        ([0, 2], {(1, 2)}, False),
        (list(range(1, 10)), {(n, n + 1) for n in range(1, 9)}, False),
    ],
    ids=["pair", "whatever order", "others", "third", "ring", "two pairs", "single", "one person", "gone", "enough"],
)
def test_a_workunit_waits_until_somebody_outside_a_pair_agrees(
    holders: list[int], pairs: set[Pair], waits: bool
) -> None:
    assert waits_for_another(holders, pairs) is waits


@pytest.mark.parametrize(("count", "waits"), [(7, True), (8, False), (9, False)])
def test_eight_that_agree_are_enough_even_if_all_are_in_pairs(count: int, waits: bool) -> None:
    pairs = {(one, other) for other in range(count) for one in range(other)}
    assert waits_for_another(range(count), pairs) is waits
