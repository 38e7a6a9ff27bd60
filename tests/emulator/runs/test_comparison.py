"""Figures over seeds: spreads, and paired differences with confidence intervals."""

from __future__ import annotations

import pytest
from scipy import stats

from emulator.runs.comparison import Difference, Spread, compare, paired_difference
from emulator.runs.variants import Variant, references, swept


def test_the_interval_is_students_on_the_differences_at_each_seed() -> None:
    # Differences 1, 2, 3: mean 2, standard deviation 1; t(0.975, 2) = 4.302653, and 4.302653 / sqrt(3) = 2.484138.
    found = paired_difference({1: 2, 2: 4, 3: 6}, {1: 1, 2: 2, 3: 3})
    assert found is not None
    assert (found.mean, found.pairs) == (2, 3)
    assert found.low == pytest.approx(2 - 2.484138, abs=1e-6)
    assert found.high == pytest.approx(2 + 2.484138, abs=1e-6)
    assert not found.is_clear


def test_it_is_that_of_a_published_implementation() -> None:
    values, others = [0.31, 0.29, 0.35, 0.4, 0.28], [0.1, 0.12, 0.09, 0.2, 0.11]
    known = stats.ttest_rel(values, others).confidence_interval(0.95)
    found = paired_difference(dict(enumerate(values)), dict(enumerate(others)))
    assert found is not None and found.is_clear
    assert (found.low, found.high) == pytest.approx((known.low, known.high))


def test_only_seeds_that_both_have_are_compared() -> None:
    assert paired_difference({1: 5, 2: 9}, {2: 1, 3: 1}) is None
    assert paired_difference({1: 5, 2: 6, 3: 99}, {1: 4, 2: 5, 4: 0}) == Difference(1, 1, 1, 2)


def test_equal_figures_differ_by_nothing() -> None:
    same = {1: 0.1, 2: 0.7}
    assert paired_difference(same, same) == Difference(0, 0, 0, 2)


@pytest.mark.parametrize(
    ("values", "compared_with"),
    [
        ([None, None, None], [None, 0, 0]),  # policies: all with the first
        ([1, 2, 3], [None, 0, 0]),  # one policy at several values: all with the first value
        ([1, 2, 1, 2], [None, None, 0, 1]),  # two policies at two values: at each value
        ([None], [None]),
    ],
)
def test_what_a_variant_is_compared_with(values: list[float | None], compared_with: list[int | None]) -> None:
    assert references(values) == compared_with


def test_a_variant_whose_runs_all_failed_has_no_figures() -> None:
    first, second = compare([{1: {"idle": 0.5}, 2: {"idle": 0.7}}, {}], [None, None], ["idle"])
    assert first.spreads == {"idle": Spread(0.6, 0.5, 0.7)}
    assert (second.spreads, second.differences) == ({}, {})


def test_a_sweep_is_each_policy_at_each_value() -> None:
    bases = [Variant("rec", "rec"), Variant("ltd", "ltd", parameters={"eligibility_rule": False})]
    assert [(v.label, v.parameters, v.value) for v in swept(bases, "cpus", [1, 2])] == [
        ("rec, 1", {"cpus": 1}, 1),
        ("rec, 2", {"cpus": 2}, 2),
        ("ltd, 1", {"eligibility_rule": False, "cpus": 1}, 1),
        ("ltd, 2", {"eligibility_rule": False, "cpus": 2}, 2),
    ]
    assert swept(bases, "", []) == bases
