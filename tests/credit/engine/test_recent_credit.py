"""Recent average credit."""

from __future__ import annotations

from math import isfinite, log

from hypothesis import given
from hypothesis import strategies as st

from credit.engine.recent_credit import add_credit, add_credit_as_deployed, decayed
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import DAY, NOW, WEEK, about

RULES = Rules.published()
DEPLOYED = Rules.deployed()


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
    remaining = decayed(avg, NOW - secs, NOW, RULES)
    assert isfinite(average)
    assert remaining * (1 - 1e-9) <= average <= (remaining + credit * log(2) / 7) * (1 + 1e-9)
