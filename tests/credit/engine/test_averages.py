"""Running averages: the document's N, A and X, and what is not a sample."""

from __future__ import annotations

from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.averages import SAMPLE_LIMIT, Average, AverageRules, AverageWithVariance
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import about

HOST = Rules.published().host_average
VERSION = Rules.published().version_average


def averaged(rules: AverageRules, *samples: float) -> Average:
    average = Average()
    for sample in samples:
        average.add(sample, rules)
    return average


def with_variance(rules: AverageRules, *samples: float) -> AverageWithVariance:
    average = AverageWithVariance()
    for sample in samples:
        average.add(sample, rules)
    return average


def test_nothing_measured_is_none() -> None:
    assert Average().avg is None
    assert (AverageWithVariance().avg, AverageWithVariance().var) == (None, None)


def test_the_first_samples_count_evenly() -> None:
    # (1 + 2 + 3) / 3
    assert averaged(HOST, 1, 2, 3) == Average(3, about(2))


@pytest.mark.parametrize(
    ("rules", "n", "expected"),
    [
        (HOST, 9, 1 + 1 / 10),  # the tenth sample still counts evenly: 1 + (2 - 1) / 10
        (HOST, 10, 1.01),  # the eleventh has the weight: 1 + 0.01 × (2 - 1)
        (HOST, 11, 1.01),
        (VERSION, 99, 1 + 1 / 100),
        (VERSION, 100, 1.001),
        (VERSION, 101, 1.001),
        # Deployed, the twentieth and the hundredth have the weight already.
        (Rules.deployed().host_average, 18, 1 + 1 / 19),
        (Rules.deployed().host_average, 19, 1.01),
        (Rules.deployed().host_average, 20, 1.01),
        (Rules.deployed().version_average, 98, 1 + 1 / 99),
        (Rules.deployed().version_average, 99, 1.001),
    ],
)
def test_the_first_samples_count_evenly_and_later_ones_have_a_weight(
    rules: AverageRules, n: int, expected: float
) -> None:
    average = Average(n, 1.0)
    average.add(2.0, rules)
    assert average == Average(n + 1, about(expected, rel=1e-15))


def test_the_first_sample_is_taken_as_it_is() -> None:
    assert averaged(HOST, 1e30).avg == 1e30


def test_a_later_sample_of_a_host_counts_at_most_ten_times_the_average() -> None:
    # 1 + (10 - 1) / 2
    assert averaged(HOST, 1, 1e9).avg == 5.5


def test_a_later_sample_of_a_version_counts_at_most_a_hundred_times_the_average() -> None:
    # 1 + (100 - 1) / 2; deployed: 1 + (10 - 1) / 2
    assert averaged(VERSION, 1, 1e9).avg == 50.5
    assert averaged(Rules.deployed().version_average, 1, 1e9).avg == 5.5


def test_an_average_of_zero_caps_nothing() -> None:
    # 0 + (8 - 0) / 2
    assert averaged(HOST, 0, 8).avg == 4


def test_variance_of_even_samples_is_that_of_the_samples() -> None:
    # mean 4, deviations -2, 0, 2: squares add up to 8; 8 / 3
    average = with_variance(HOST, 2, 4, 6)
    assert (average.avg, average.q) == (about(4), about(8))
    assert average.var == about(8 / 3)


def test_variance_of_later_samples_has_the_weight() -> None:
    # d = 6 - 4 = 2; avg 4 + 0.01 × 2; var 1 + 0.01 × (2² - 1); q stays
    average = AverageWithVariance(10, 4.0, 1.0, 10.0)
    average.add(6.0, HOST)
    assert average == AverageWithVariance(11, about(4.02), about(1.03), 10.0)


@pytest.mark.parametrize("sample", [nan, inf, -inf, -1.0, -1e-300, 1e304, SAMPLE_LIMIT])
def test_what_is_no_sample_changes_nothing(sample: float) -> None:
    average = averaged(HOST, 3)
    average.add(sample, HOST)
    assert average == Average(1, 3)
    spread = with_variance(HOST, 3)
    spread.add(sample, HOST)
    assert spread == AverageWithVariance(1, 3, 0.0, 0.0)


@given(st.lists(st.floats(), max_size=60))
def test_averages_stay_finite_whatever_comes(samples: list[float]) -> None:
    average, spread = averaged(HOST, *samples), with_variance(HOST, *samples)
    taken = [sample for sample in samples if 0 <= sample < SAMPLE_LIMIT]
    assert average.n == spread.n == len(taken)
    assert average.avg == spread.avg
    if average.avg is not None and spread.var is not None:
        assert 0 <= average.avg <= max(taken) * (1 + 1e-9)
        assert isfinite(spread.var)
        assert spread.var >= 0


@given(st.lists(st.floats(1, 5), min_size=1, max_size=10))
def test_even_samples_give_mean_and_variance(samples: list[float]) -> None:
    average = with_variance(HOST, *samples)
    mean = sum(samples) / len(samples)
    assert average.avg == about(mean)
    assert average.var == about(sum((s - mean) ** 2 for s in samples) / len(samples), abs=1e-9)


@given(st.floats(0.1, 10), st.lists(st.floats(0, 1e9), min_size=1, max_size=5))
def test_huge_samples_raise_a_settled_average_little(avg: float, samples: list[float]) -> None:
    average = Average(50, avg)
    for sample in samples:
        average.add(sample, HOST)
    # each sample at most ten times the average, with weight 0.01: at most × 1.09
    assert average.avg is not None
    assert average.avg <= avg * 1.09 ** len(samples) * (1 + 1e-12)


@pytest.mark.parametrize("before", [0, 4, 10, 30])
@pytest.mark.parametrize("count", [1, 4, 8, 200])
def test_an_average_joins_another_as_if_each_sample_were_its_mean(before: int, count: int) -> None:
    rules = AverageRules(10, 0.01, 10)
    one_by_one, at_once = Average(), Average()
    for _ in range(before):
        one_by_one.add(2.0, rules)
        at_once.add(2.0, rules)
    for _ in range(count):
        one_by_one.add(3.0, rules)
    at_once.join(Average(count, 3.0), rules)
    assert (at_once.n, at_once.avg) == (one_by_one.n, about(one_by_one.avg or 0.0))


def test_a_first_sample_of_next_to_nothing_does_not_cap_what_is_usual() -> None:
    usual, letter = Average(), Average()
    for number in range(20):
        usual.add(1.0 if number else 1e-300, HOST, 1.0)
        letter.add(1.0 if number else 1e-300, HOST)
    # Nine of ten, and then ten times a hundredth of the way to 1
    assert usual.avg == about(1 - 0.1 * 0.99**10)
    assert letter.avg == about(0, abs=1e-280)
    # At most ten times what is usual
    usual = Average(10, 1e-300)
    usual.add(1e9, HOST, 1.0)
    assert usual.avg == about(0.1)


def test_an_average_that_joins_another_caps_it_at_ten_times_what_is_usual() -> None:
    average = Average(5, 1e-300)
    average.join(Average(5, 100.0), AverageRules(10, 0.01, 10), 1.0)
    # (5 × 0 + 5 × 10) / 10
    assert average == Average(10, 5.0)


def test_an_average_joins_nothing_and_caps_what_it_joins() -> None:
    rules, average = AverageRules(10, 0.01, 10), Average(5, 1.0)
    average.join(Average(), rules)
    assert average == Average(5, 1.0)
    average.join(Average(5, 100.0), rules)
    # At most ten times: (5 × 1 + 5 × 10) / 10
    assert average == Average(10, 5.5)
