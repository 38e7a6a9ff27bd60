"""Preferences: complete sets within sane limits, whatever was stored; sentences for what is wrong."""

from __future__ import annotations

import math

import pytest

from accounting.engine.preferences import PREFERENCES, complete, faults


def test_nothing_chosen_is_all_defaults() -> None:
    assert complete({}) == {name: preference.default for name, preference in PREFERENCES.items()}


def test_defaults_are_within_their_own_limits() -> None:
    assert faults(complete({})) == []


def test_what_was_chosen_is_kept_and_the_rest_is_default() -> None:
    chosen = complete({"max_ncpus_pct": 50, "start_hour": 8.5})
    assert (chosen["max_ncpus_pct"], chosen["start_hour"], chosen["end_hour"]) == (50, 8.5, 0)


@pytest.mark.parametrize(
    ("value", "sent"), [(0, 1), (-5, 1), (101, 100), (1e304, 100), (10**400, 100), (-(10**400), 1), (99.5, 99.5)]
)
def test_a_number_beyond_its_limits_is_sent_as_the_limit(value: float, sent: float) -> None:
    assert complete({"max_ncpus_pct": value})["max_ncpus_pct"] == sent


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, None, "50", [50]])
def test_what_is_no_number_is_sent_as_the_default(value: float) -> None:
    assert complete({"max_ncpus_pct": value})["max_ncpus_pct"] == 100
    assert faults({"max_ncpus_pct": value}) == ["max_ncpus_pct must be a number"]


def test_an_element_that_no_client_knows_is_not_sent() -> None:
    assert "max_moons" not in complete({"max_moons": 3})
    assert faults({"max_moons": 3}) == ["max_moons is no preference that clients know"]


@pytest.mark.parametrize("value", [0, 100.1, 10**400, -1])
def test_a_number_beyond_its_limits_is_a_fault_that_names_them(value: float) -> None:
    assert faults({"max_ncpus_pct": value}) == ["max_ncpus_pct must be from 1 to 100"]


def test_every_fault_is_told() -> None:
    assert len(faults({"max_ncpus_pct": 0, "start_hour": 25, "end_hour": "x", "end_our": 1})) == 4
