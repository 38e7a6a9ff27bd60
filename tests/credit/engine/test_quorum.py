"""Which results agree: quorums, majorities, ties, late ones."""

from __future__ import annotations

import pytest

from credit.engine.quorum import Equal, check_late, check_set, check_too_late


def outputs(*values: object) -> Equal:
    """Results with these outputs; one of None is unfit."""
    return lambda one, other: values[one] is not None and values[one] == values[other]


@pytest.mark.parametrize(
    ("values", "quorum", "states", "canonical"),
    [
        ("a", 1, [1], 0),
        ("aa", 2, [1, 1], 0),
        ("ab", 2, [4, 4], None),
        ("bab", 2, [1, 2, 1], 0),
        ("abb", 2, [2, 1, 1], 1),
        # As many of each: another result has to decide.
        ("aabb", 2, [4, 4, 4, 4], None),
        ("aabbb", 2, [2, 2, 1, 1, 1], 2),
        # Two of three are a majority, but the quorum is three.
        ("aab", 3, [4, 4, 4], None),
        ("ab", 1, [4, 4], None),
        # Too few to ask.
        ("a", 2, [0], None),
        ("", 1, [], None),
    ],
)
def test_the_largest_group_of_a_quorum_decides(
    values: str, quorum: int, states: list[int], canonical: int | None
) -> None:
    verdict = check_set(len(values), quorum, outputs(*values))
    assert (verdict.states, verdict.canonical, verdict.unfit) == (states, canonical, ())


def test_unfit_results_are_invalid_and_count_for_no_quorum() -> None:
    verdict = check_set(3, 2, outputs("a", None, "a"))
    assert (verdict.states, verdict.canonical, verdict.unfit) == ([1, 2, 1], 0, (1,))
    verdict = check_set(2, 2, outputs("a", None))
    assert (verdict.states, verdict.canonical, verdict.unfit) == ([0, 2], None, (1,))


def test_agreement_that_does_not_carry_over_makes_the_middle_one_canonical() -> None:
    # 1.0 and 1.2 agree with 1.1, not with each other.
    numbers = [1.0, 1.1, 1.2]
    verdict = check_set(3, 2, lambda one, other: abs(numbers[one] - numbers[other]) < 0.15)
    assert (verdict.states, verdict.canonical) == ([1, 1, 1], 1)


def test_late_results_are_compared_with_the_canonical_one_only() -> None:
    verdict = check_late(4, 1, outputs("b", "a", "a", None))
    assert (verdict.states, verdict.canonical, verdict.unfit) == ([2, 1, 1, 2], 1, (3,))


def test_without_the_canonical_result_late_ones_are_too_late() -> None:
    assert check_too_late(2).states == [5, 5]
