"""Run-time estimates, and peak FLOPS cut to the ceilings."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.flops import UNKNOWN_GPU_FLOPS, Ceilings, GpuUse, knows_speed, peak_flops, projected_flops
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import about

RULES = Rules.published()
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
    assert peak_flops(0, 1e9, [GpuUse(1e6, 500e12), GpuUse(5, 1e12)], Ceilings()) == 64 * 500e12


@pytest.mark.parametrize("flops", [0.0, -1.0, nan, inf, 43_980_464e9])
def test_a_gpu_with_a_speed_that_none_has_counts_as_one_of_unknown_speed(flops: float) -> None:
    use = GpuUse(2, flops)
    assert not knows_speed(use, Ceilings())
    assert peak_flops(0, 1e9, [use], Ceilings()) == 2 * UNKNOWN_GPU_FLOPS
    assert knows_speed(GpuUse(2, 0.0, 1e12), Ceilings())


def test_a_failed_benchmark_is_used_as_the_client_did() -> None:
    assert peak_flops(4, 1e9, [], Ceilings()) == 4e9
    assert peak_flops(4, 0.0, [], Ceilings()) == 4e9


@given(st.floats(), st.floats(), st.lists(st.builds(GpuUse, st.floats(), st.floats(), st.floats()), max_size=5))
def test_peak_flops_are_finite_whatever_is_claimed(ncpus: float, p_fpops: float, gpus: list[GpuUse]) -> None:
    most = 1024 * 200e9 + 64 * 500e12
    flops = peak_flops(ncpus, p_fpops, gpus, Ceilings())
    assert 0 <= flops <= most * (1 + 1e-12)
