"""Run-time estimates, peak FLOPS cut to the ceilings, recent average credit, and the limits an app may set."""

from __future__ import annotations

from math import inf, isfinite, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.flops import Ceilings, GpuUse, peak_flops, projected_flops
from credit.engine.recent_credit import add_credit, add_credit_as_deployed, decayed
from credit.engine.rules import LIMITS, Rules, RulesError
from tests.support.credit_engine_facts import DAY, NOW, WEEK, about

RULES = Rules.published()
DEPLOYED = Rules.deployed()
PEAK = 10e9


def et(n: int, avg: float | None) -> AverageWithVariance:
    return AverageWithVariance(n, avg, 0.0)


@pytest.mark.parametrize(("n", "expected"), [(9, 5e9), (10, 4e9), (11, 4e9)])
def test_the_hosts_own_run_times_are_used_from_ten_samples_on(n: int, expected: float) -> None:
    # 1 / 2.5e-10 = 4e9; below the threshold 10e9 × 0.5
    assert projected_flops(et(n, 2.5e-10), None, PEAK, False, RULES) == about(expected)


@pytest.mark.parametrize(("n", "expected"), [(99, 5e9), (100, 2.5e9), (101, 2.5e9)])
def test_the_versions_average_is_used_from_a_hundred_samples_on(n: int, expected: float) -> None:
    # 10e9 / 4
    assert projected_flops(et(9, 2.5e-10), Average(n, 4.0), PEAK, False, RULES) == about(expected)


def test_a_guess_says_how_efficient_programs_are() -> None:
    assert projected_flops(None, None, PEAK, False, RULES) == 5e9
    assert projected_flops(None, None, PEAK, True, RULES) == 1e9


def test_an_estimate_is_never_above_the_peak() -> None:
    assert projected_flops(et(50, 1e-20), None, PEAK, False, RULES) == PEAK
    assert projected_flops(None, Average(500, 0.1), PEAK, False, RULES) == PEAK


def test_averages_of_zero_or_none_estimate_nothing() -> None:
    assert projected_flops(et(50, 0.0), Average(500, 0.0), PEAK, False, RULES) == 5e9
    assert projected_flops(et(50, None), Average(500, None), PEAK, False, RULES) == 5e9


# --- peak FLOPS -------------------------------------------------------------------------------------


def test_peak_flops_are_of_all_devices_used() -> None:
    # 0.5 × 4e9 + 2 × 5e12
    gpus = [GpuUse(2, 5e12, 1e12)]
    assert peak_flops(0.5, 4e9, gpus, Ceilings()) == about(10.002e12)


def test_the_higher_of_single_and_double_precision_counts() -> None:
    assert peak_flops(0, 4e9, [GpuUse(1, 5e12, 7e12)], Ceilings()) == 7e12


def test_hardware_is_cut_to_the_ceilings() -> None:
    assert peak_flops(1e6, 1e300, [], Ceilings()) == 1024 * 200e9
    assert peak_flops(0, 1e9, [GpuUse(1e6, inf), GpuUse(5, 1e12)], Ceilings()) == 64 * 500e12


def test_a_failed_benchmark_is_used_as_the_client_did() -> None:
    assert peak_flops(4, 1e9, [], Ceilings()) == 4e9
    assert peak_flops(4, 0.0, [], Ceilings()) == 4e9


@given(st.floats(), st.floats(), st.lists(st.builds(GpuUse, st.floats(), st.floats(), st.floats()), max_size=5))
def test_peak_flops_are_finite_whatever_is_claimed(ncpus: float, p_fpops: float, gpus: list[GpuUse]) -> None:
    most = 1024 * 200e9 + 64 * 500e12
    flops = peak_flops(ncpus, p_fpops, gpus, Ceilings())
    assert 0 <= flops <= most * (1 + 1e-12)


# --- recent average credit --------------------------------------------------------------------------


def test_a_first_grant_is_spread_over_the_time_since_the_job_was_sent() -> None:
    # 10 credits in 2 days
    assert add_credit(0.0, None, NOW, 10.0, NOW - 2 * DAY, RULES) == (5.0, NOW)


def test_a_first_grant_is_spread_over_a_second_at_least() -> None:
    assert add_credit(0.0, None, NOW, 10.0, NOW + 5, RULES) == (10.0 * DAY, NOW)


def test_after_a_week_half_is_left() -> None:
    # 8 × 0.5 + 0.5 × (14 / 7)
    average, at = add_credit(8.0, NOW - WEEK, NOW, 14.0, NOW, RULES)
    assert (average, at) == (about(5.0), NOW)
    assert decayed(8.0, NOW - WEEK, NOW, RULES) == about(4.0)


def test_several_grants_at_once_add_up_by_the_limit() -> None:
    average, at = add_credit(8.0, NOW, NOW, 14.0, NOW, RULES)
    assert (average, at) == (about(8 + log(2) * 14 / 7), NOW)
    assert decayed(8.0, NOW, NOW, RULES) == 8.0


def test_a_microsecond_is_next_to_no_time() -> None:
    average, _ = add_credit(8.0, NOW - 1e-6, NOW, 14.0, NOW, RULES)
    assert average == about(8 + log(2) * 14 / 7, rel=1e-9)


def test_a_clock_set_back_counts_as_no_time() -> None:
    assert add_credit(8.0, NOW + DAY, NOW, 0.0, NOW, RULES) == (8.0, NOW + DAY)


def test_a_steady_income_becomes_the_average() -> None:
    average, at = add_credit(0.0, None, NOW, 100.0, NOW - DAY, RULES)
    for day in range(1, 100):
        average, at = add_credit(average, at, NOW + day * DAY, 100.0, NOW, RULES)
    assert average == about(100)


def test_deployed_the_limit_is_used_while_next_to_nothing_is_lost() -> None:
    half_a_second = add_credit_as_deployed(8.0, NOW - 0.5, NOW, 14.0, NOW, DEPLOYED)
    # 1 - 0.5^(0.5 / 604800) = 5.7e-7 < 1e-6
    assert half_a_second == about(8 * 0.5 ** (0.5 / WEEK) + log(2) * 2, rel=1e-12)
    assert add_credit_as_deployed(8.0, NOW - WEEK, NOW, 14.0, NOW, DEPLOYED) == about(5.0)
    assert add_credit_as_deployed(0.0, None, NOW, 10.0, NOW - 2 * DAY, DEPLOYED) == 5.0
    assert add_credit_as_deployed(0.0, None, NOW, 10.0, NOW, DEPLOYED) == 0.0


@given(st.floats(0, 1e15), st.floats(0, 1e10), st.floats(0, 1e15))
def test_the_average_stays_between_decay_and_decay_with_all_at_once(avg: float, secs: float, credit: float) -> None:
    average, _ = add_credit(avg, NOW - secs, NOW, credit, NOW, RULES)
    kept = decayed(avg, NOW - secs, NOW, RULES)
    assert isfinite(average)
    assert kept * (1 - 1e-9) <= average <= (kept + credit * log(2) / 7) * (1 + 1e-9)


# --- limits of an app -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("rules", [RULES, DEPLOYED], ids=["published", "deployed"])
def test_an_app_may_set_each_limit_within_its_range(rules: Rules, name: str) -> None:
    low, high = LIMITS[name]
    assert getattr(rules.with_limits(**{name: low}), name) == low
    assert getattr(rules.with_limits(**{name: high}), name) == high
    for wrong in (low / 2, high * 2, nan, inf, -inf, -1.0):
        with pytest.raises(RulesError, match=f"{name} must be from {low:g} to {high:g}".replace("+", r"\+")):
            rules.with_limits(**{name: wrong})


def test_a_limit_that_an_app_leaves_empty_is_the_rule_sets() -> None:
    assert RULES.with_limits(max_host_scale=None) == RULES


def test_an_unknown_limit_is_refused() -> None:
    with pytest.raises(TypeError, match="initial_error_rate is not a limit"):
        RULES.with_limits(initial_error_rate=0.5)


def test_own_limits_reach_the_averages() -> None:
    rules = RULES.with_limits(host_avg_samples=3, host_avg_weight=0.5, version_avg_limit=7)
    assert (rules.host_average.even_samples, rules.host_average.weight, rules.version_average.limit) == (3, 0.5, 7)
    assert DEPLOYED.with_limits(host_avg_samples=3).host_average.even_samples == 2


def test_rule_sets_are_found_by_name() -> None:
    assert Rules.of("published") == RULES
    assert Rules.of("deployed") == DEPLOYED
    with pytest.raises(ValueError, match="other"):
        Rules.of("other")
