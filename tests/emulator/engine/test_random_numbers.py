"""Random numbers and functions that are the same on every machine."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.engine.availability import UpDown
from emulator.engine.random_numbers import expm1, exponential, log, random_stream, standard_normal
from emulator.engine.scenario import Availability


@given(st.floats(1e-300, 1e300))
def test_log_is_the_logarithm(x: float) -> None:
    assert log(x) == pytest.approx(math.log(x), rel=2e-15, abs=2e-15)


@given(st.floats(0, 30))
def test_expm1_is_the_exponential_less_one(x: float) -> None:
    assert expm1(x) == pytest.approx(math.expm1(x), rel=1e-13)


def test_normal_draws_have_the_moments_of_a_normal_distribution() -> None:
    generator = random_stream(1, "test")
    draws = [standard_normal(generator) for _ in range(40_000)]
    # Standard errors: mean 0.005, variance 0.007, 4th moment 0.05.
    assert sum(draws) / 40_000 == pytest.approx(0.0, abs=0.02)
    assert sum(x * x for x in draws) / 40_000 == pytest.approx(1.0, abs=0.03)
    assert sum(x**4 for x in draws) / 40_000 == pytest.approx(3.0, abs=0.2)


def test_streams_are_their_own() -> None:
    assert random_stream(1, "a").random() == random_stream(1, "a").random()
    assert len({random_stream(seed, name).random() for seed in (1, 2) for name in ("a", "b")}) == 4


def test_exponential_draws_have_their_mean() -> None:
    generator = random_stream(1, "test")
    assert sum(exponential(generator, 5.0) for _ in range(40_000)) / 40_000 == pytest.approx(5.0, rel=0.03)


def test_a_process_is_up_for_its_fraction() -> None:
    # Mean up time an hour, 30 % up, so mean down time 2.33 hours; sampled every 10 minutes for 5 years: 13,000
    # ups and downs, so 1 % off is 1.6 standard errors or so.
    process = UpDown(Availability(0.3, 3600.0), random_stream(2, "test"))
    looks = [process.advance(600.0 * i) for i in range(5 * 365 * 144)]
    assert sum(looks) / len(looks) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(("fraction", "up"), [(1.0, True), (0.0, False)])
def test_always_and_never_are_just_that(fraction: float, up: bool) -> None:
    process = UpDown(Availability(fraction), random_stream(1, "test"))
    assert {process.advance(1e9 * i) for i in range(5)} == {up}
