"""The effect of successes and failures on a host's record: probation, error rate, jobs per day."""

from __future__ import annotations

import random
from datetime import date
from math import nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.averages import Average
from credit.engine.facts import AppFacts, HostVersionFacts
from credit.engine.probation import (
    Ending,
    count_cheat,
    count_crash,
    count_ending,
    count_error,
    count_invalid,
    count_sent,
    count_success,
    count_valid,
    fails_often,
    is_on_probation,
    is_suspicious,
    jobs_left_today,
    most_jobs_per_day,
    needs_confirmation,
    replication_chance,
)
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import DAY, NOW, WEEK

RULES = Rules.published()
LETTER = Rules.letter()
MONDAY, TUESDAY = date(2027, 1, 18), date(2027, 1, 19)


def test_a_new_record_is_on_probation() -> None:
    assert is_on_probation(HostVersionFacts(), NOW, RULES)


def test_the_first_job_of_a_spell_sets_its_end_and_later_ones_do_not_move_it() -> None:
    record = HostVersionFacts()
    count_sent(record, NOW, WEEK, MONDAY)
    count_sent(record, NOW + DAY, WEEK, TUESDAY)
    assert record.host_scale_time == NOW + WEEK


@pytest.mark.parametrize(("later", "ends"), [(-1.0, False), (0.0, False), (1.0, True)])
def test_probation_ends_with_a_valid_result_after_its_time(later: float, ends: bool) -> None:
    record = HostVersionFacts(host_scale_time=NOW)
    count_valid(record, NOW + later, WEEK, RULES)
    assert record.scale_probation is not ends


def test_probation_does_not_end_before_a_job_was_sent() -> None:
    record = HostVersionFacts()
    count_valid(record, NOW, WEEK, RULES)
    assert record.scale_probation


def test_an_error_starts_a_new_spell() -> None:
    record = HostVersionFacts(scale_probation=False, host_scale_time=NOW - DAY, consecutive_valid=8)
    count_error(record, NOW, WEEK, RULES)
    assert (record.scale_probation, record.host_scale_time, record.consecutive_valid) == (True, NOW + WEEK, 0)


SETTLED: dict[str, Any] = {
    "scale_probation": False,
    "host_scale_time": NOW - DAY,
    "error_rate": 0.02,
    "consecutive_valid": 8,
}


@pytest.mark.parametrize("ending", [ending for ending in Ending if ending not in (Ending.SUCCESS, Ending.NOT_NEEDED)])
def test_every_ending_without_success_begins_a_new_spell(ending: Ending) -> None:
    record = HostVersionFacts(**SETTLED)
    assert count_ending(record, ending, NOW, WEEK, 400, RULES)
    assert (record.scale_probation, record.host_scale_time) == (True, NOW + WEEK)


@pytest.mark.parametrize("rules", [Rules.letter(), Rules.deployed()])
@pytest.mark.parametrize("ending", Ending)
def test_to_the_letter_only_errors_and_aborts_begin_one(ending: Ending, rules: Rules) -> None:
    record = HostVersionFacts(**SETTLED)
    count_ending(record, ending, NOW, WEEK, 400, rules)
    assert record.scale_probation is (ending in (Ending.FAILED, Ending.ABORTED))


def test_an_invalid_result_begins_a_spell_but_to_the_letter() -> None:
    record, by_letter = HostVersionFacts(**SETTLED), HostVersionFacts(**SETTLED)
    count_invalid(record, NOW, WEEK, RULES)
    count_invalid(by_letter, NOW, WEEK, Rules.letter())
    assert (record.scale_probation, record.host_scale_time) == (True, NOW + WEEK)
    assert (by_letter.scale_probation, by_letter.host_scale_time) == (False, NOW - DAY)


def test_a_short_delay_bound_does_not_end_a_longer_spell() -> None:
    record = HostVersionFacts()
    count_error(record, NOW, WEEK, RULES)
    count_error(record, NOW + 1, DAY, RULES)
    assert record.host_scale_time == NOW + WEEK


@given(
    endings=st.lists(st.sampled_from([ending for ending in Ending if ending is not Ending.NOT_NEEDED]), min_size=1),
    gap=st.floats(0, 2 * WEEK),
)
def test_whatever_happens_a_spell_lasts_for_a_delay_bound_after_a_failure(endings: list[Ending], gap: float) -> None:
    record, now, failed_at = HostVersionFacts(**SETTLED, max_jobs_per_day=400), NOW, None
    for ending in endings:
        now += gap
        count_sent(record, now, WEEK, MONDAY)
        count_ending(record, ending, now, WEEK, 400, RULES)
        if ending is Ending.SUCCESS:
            count_valid(record, now, WEEK, RULES)
        else:
            failed_at = now
        assert is_on_probation(record, now, LETTER) or failed_at is None or now > failed_at + WEEK
        assert 1 <= record.max_jobs_per_day <= 400
        assert 0 <= record.error_rate <= 1
        assert 0 <= record.failing_share <= 1


def test_a_cheat_begins_a_spell() -> None:
    record = HostVersionFacts(scale_probation=False, host_scale_time=NOW - DAY, error_rate=0.0)
    count_cheat(record, NOW, WEEK, RULES)
    assert (record.scale_probation, record.host_scale_time) == (True, NOW + WEEK)


@pytest.mark.parametrize("count", [count_error, count_cheat, count_invalid])
@pytest.mark.parametrize("rules", [RULES, LETTER])
def test_nothing_that_counts_against_a_host_shortens_its_spell(count: Any, rules: Rules) -> None:
    record = HostVersionFacts(host_scale_time=NOW + 2 * WEEK)
    count(record, NOW, WEEK, rules)
    count_sent(record, NOW + 1, WEEK, MONDAY)
    assert record.host_scale_time == NOW + 2 * WEEK


def test_single_results_bring_no_trust_but_to_the_letter() -> None:
    """Nothing was compared: a host that makes up its outputs would lower its chance of a second result with each."""
    for rules, expected in ((RULES, (50, 0.02)), (LETTER, (51, pytest.approx(0.019)))):
        record = HostVersionFacts(error_rate=0.02, consecutive_valid=50)
        count_valid(record, NOW, WEEK, rules, is_unreplicated=True)
        assert (record.consecutive_valid, record.error_rate) == expected


# --- which samples raise a host's factor -------------------------------------------------------------
def settled_record(*, clean: float) -> HostVersionFacts:
    return HostVersionFacts(Average(50, clean), clean_pfc=Average(20, clean), **SETTLED)


def test_samples_are_clean_when_they_have_waited_for_a_delay_bound() -> None:
    record = HostVersionFacts()
    count_valid(record, NOW, WEEK, RULES)
    assert record.samples_since == NOW
    record.recent_pfc = Average(3, 2.0)
    count_valid(record, NOW + WEEK, WEEK, RULES)
    assert (record.recent_pfc, record.waiting_pfc, record.clean_pfc) == (Average(3, 2.0), Average(), Average())
    count_valid(record, NOW + WEEK + 1, WEEK, RULES)
    assert (record.recent_pfc, record.waiting_pfc, record.clean_pfc) == (Average(), Average(3, 2.0), Average())
    count_valid(record, NOW + 2 * WEEK + 1, WEEK, RULES)
    assert (record.waiting_pfc, record.clean_pfc) == (Average(3, 2.0), Average())
    count_valid(record, NOW + 2 * WEEK + 2, WEEK, RULES)
    assert (record.waiting_pfc, record.clean_pfc) == (Average(), Average(3, 2.0))


def test_each_job_is_a_hundredth_of_the_failing_share() -> None:
    record = HostVersionFacts()
    count_error(record, NOW, WEEK, RULES)
    assert record.failing_share == pytest.approx(0.01)
    # 0.01 + 0.01 × (1 − 0.01); × 0.99 for a valid result
    count_invalid(record, NOW, WEEK, RULES)
    assert record.failing_share == pytest.approx(0.0199)
    count_cheat(record, NOW, WEEK, RULES)
    # 0.0199 + 0.01 × (1 − 0.0199)
    assert record.failing_share == pytest.approx(0.029701)
    count_valid(record, NOW, WEEK, RULES)
    assert record.failing_share == pytest.approx(0.02940399)
    count_valid(record, NOW, WEEK, RULES, is_unreplicated=True)
    assert record.failing_share == pytest.approx(0.0291099501)


def test_six_failures_in_a_row_are_too_many() -> None:
    # 1 − 0.99^5 = 0.0490, 1 − 0.99^6 = 0.0585
    record = HostVersionFacts()
    for _ in range(5):
        count_error(record, NOW, WEEK, RULES)
    assert not fails_often(record, RULES)
    count_error(record, NOW, WEEK, RULES)
    assert fails_often(record, RULES)


def test_a_host_that_failed_half_of_its_jobs_is_off_probation_after_230_good_ones() -> None:
    # 0.5 × 0.99^229 = 0.0501, × 0.99 = 0.0496
    record = HostVersionFacts(clean_pfc=Average(10, 1.0), failing_share=0.5)
    for _ in range(229):
        count_valid(record, NOW, WEEK, RULES)
    assert is_on_probation(record, NOW, RULES)
    count_valid(record, NOW, WEEK, RULES)
    assert not is_on_probation(record, NOW, RULES)


def test_samples_that_come_or_wait_while_too_many_jobs_fail_never_become_clean() -> None:
    clean = Average(20, 2.0)
    record = HostVersionFacts(clean_pfc=clean, waiting_pfc=Average(9, 0.2), recent_pfc=Average(9, 0.2))
    # A job that was held back times out: 0.05 + 0.01 × 0.95 = 0.0595; then 0.0595 × 0.99 = 0.0589.
    record.failing_share, record.samples_since = 0.05, NOW - 2 * WEEK
    count_error(record, NOW, WEEK, RULES)
    count_valid(record, NOW, WEEK, RULES)
    assert (record.waiting_pfc, record.recent_pfc, record.clean_pfc) == (Average(), Average(), clean)
    assert record.samples_since == NOW


def test_samples_of_a_time_when_the_clock_was_ahead_do_not_wait_for_that_time() -> None:
    record = HostVersionFacts(recent_pfc=Average(3, 2.0), samples_since=NOW + 100 * WEEK)
    count_valid(record, NOW, WEEK, RULES)
    assert (record.samples_since, record.recent_pfc) == (NOW, Average(3, 2.0))
    count_valid(record, NOW + WEEK + 1, WEEK, RULES)
    assert record.waiting_pfc == Average(3, 2.0)
    # One that is a little behind another makes nothing clean early.
    count_valid(record, NOW + WEEK, WEEK, RULES)
    assert record.waiting_pfc == Average(3, 2.0)


def test_a_single_result_of_a_host_on_probation_has_to_be_confirmed_where_probation_counts() -> None:
    facts = AppFacts(1, RULES, host_scale_check=True)
    record = settled_record(clean=2.0)
    record.failing_share = 0.05
    assert not needs_confirmation(facts, 2.0, record, record.pfc, None, NOW)
    count_error(record, NOW, WEEK, RULES)
    assert needs_confirmation(facts, 2.0, record, record.pfc, None, NOW)
    assert not needs_confirmation(AppFacts(1, RULES), 2.0, record, record.pfc, None, NOW)
    assert not needs_confirmation(AppFacts(1, LETTER, host_scale_check=True), 2.0, record, record.pfc, None, NOW)


def test_so_has_one_of_a_host_of_which_too_little_is_known() -> None:
    record = HostVersionFacts(Average(50, 2.0), clean_pfc=Average(9, 2.0), **SETTLED)
    assert needs_confirmation(AppFacts(1, RULES, host_scale_check=True), 2.0, record, record.pfc, None, NOW)


@pytest.mark.parametrize(
    ("rules", "before", "after"),
    [(RULES, 0.0, 0.1), (RULES, 0.8, 0.8), (LETTER, 0.0, 0.1), (LETTER, 0.8, 0.1)],
)
def test_an_absurd_claim_never_improves_an_error_rate_but_by_the_letter(
    rules: Rules, before: float, after: float
) -> None:
    record = HostVersionFacts(error_rate=before)
    count_cheat(record, NOW, WEEK, rules)
    assert record.error_rate == after


def test_the_error_rate_starts_at_a_tenth_and_falls_by_a_twentieth_when_valid() -> None:
    record = HostVersionFacts()
    assert record.error_rate == RULES.initial_error_rate
    count_valid(record, NOW, WEEK, RULES)
    assert record.error_rate == pytest.approx(0.095)


def test_the_error_rate_rises_by_a_tenth_up_to_one() -> None:
    record = HostVersionFacts()
    count_invalid(record, NOW, WEEK, RULES)
    assert record.error_rate == pytest.approx(0.2)
    for _ in range(20):
        count_error(record, NOW, WEEK, RULES)
    assert record.error_rate == 1


def test_single_results_need_an_error_rate_below_a_twentieth() -> None:
    # 0.1 × 0.95^13 = 0.0513…, × 0.95^14 = 0.0487…
    for rules in (RULES, LETTER):
        record = HostVersionFacts()
        for _ in range(13):
            count_valid(record, NOW, WEEK, rules)
        assert replication_chance(record, rules) == 1
        count_valid(record, NOW, WEEK, rules)
        assert replication_chance(record, rules) < 1
        assert replication_chance(HostVersionFacts(error_rate=0.05), rules) == 1
        assert replication_chance(None, rules) == 1


@pytest.mark.parametrize(
    ("nvalid", "chance"),
    [(0, 1), (9, 1), (10, 1), (11, 10 / 11), (20, 0.5), (199, 10 / 199), (200, 0.05), (10**6, 0.05)],
)
def test_the_chance_of_a_second_result_falls_but_not_below_a_twentieth(nvalid: int, chance: float) -> None:
    record = HostVersionFacts(error_rate=0.0, consecutive_valid=nvalid)
    assert replication_chance(record, RULES) == pytest.approx(chance)
    assert replication_chance(record, LETTER) == replication_chance(record, Rules.deployed()) == 0
    assert replication_chance(record, RULES.with_limits(min_replication_chance=0.7)) == pytest.approx(max(0.7, chance))


def test_a_trusted_host_that_begins_to_make_up_outputs_is_found() -> None:
    """After 500 good jobs, each made-up one is found with the chance 0.05: on average the twentieth."""
    draw = random.Random(7)
    found_after = []
    for _ in range(400):
        record = HostVersionFacts()
        for _ in range(500):
            count_valid(record, NOW, WEEK, RULES)
        made_up = 1
        while draw.random() >= replication_chance(record, RULES):
            # Nothing else contradicts it: it counts as valid.
            count_valid(record, NOW, WEEK, RULES)
            made_up += 1
        count_invalid(record, NOW, WEEK, RULES)
        assert replication_chance(record, RULES) == 1
        found_after.append(made_up)
    # The mean of 400 draws of mean 20 and deviation 19.5: within 4 standard errors.
    assert sum(found_after) / 400 == pytest.approx(20, abs=4)


@pytest.mark.parametrize(("sample", "odd"), [(0.19, True), (0.21, False), (2.0, False), (19.9, False), (20.1, True)])
def test_a_sample_ten_times_off_the_hosts_or_the_versions_average_is_odd(sample: float, odd: bool) -> None:
    host = Average(10, 2.0)
    assert is_suspicious(sample, host, None, RULES) is odd
    assert is_suspicious(sample, None, Average(100, 2.0), RULES) is odd
    assert is_suspicious(sample, host, Average(100, 50.0), RULES) is (odd or sample < 5)
    assert is_suspicious(nan, host, None, RULES)
    # Too few samples, or rules that do not look again
    assert not is_suspicious(sample, Average(9, 2.0), Average(99, 2.0), RULES)
    assert not is_suspicious(sample, host, None, LETTER)


def test_the_quota_starts_at_the_apps_times_the_instances() -> None:
    most = most_jobs_per_day(100, 4)
    assert jobs_left_today(HostVersionFacts(), most, MONDAY) == 400
    assert most_jobs_per_day(100, 0) == 1


def test_a_crash_takes_one_job_a_day_and_a_success_doubles() -> None:
    record = HostVersionFacts()
    count_crash(record, 400)
    assert record.max_jobs_per_day == 399
    count_success(record, 400)
    assert record.max_jobs_per_day == 400
    record.max_jobs_per_day = 3
    count_success(record, 400)
    assert record.max_jobs_per_day == 6


def test_the_quota_stays_at_least_one() -> None:
    record = HostVersionFacts(max_jobs_per_day=2)
    for _ in range(5):
        count_crash(record, 400)
    assert record.max_jobs_per_day == 1


def test_a_quota_above_what_the_app_allows_now_comes_down() -> None:
    record = HostVersionFacts(max_jobs_per_day=5000)
    assert jobs_left_today(record, 400, MONDAY) == 400
    count_crash(record, 400)
    assert record.max_jobs_per_day == 399


def test_jobs_of_the_day_start_anew_at_midnight() -> None:
    record = HostVersionFacts(max_jobs_per_day=3)
    for _ in range(3):
        count_sent(record, NOW, WEEK, MONDAY)
    assert jobs_left_today(record, 400, MONDAY) == 0
    assert jobs_left_today(record, 400, TUESDAY) == 3
    count_sent(record, NOW, WEEK, TUESDAY)
    assert (record.n_jobs_today, jobs_left_today(record, 400, TUESDAY)) == (1, 2)


def test_validity_does_not_move_the_published_quota() -> None:
    record = HostVersionFacts(max_jobs_per_day=600)
    count_valid(record, NOW, WEEK, RULES)
    count_invalid(record, NOW, WEEK, RULES)
    assert record.max_jobs_per_day == 600


@pytest.mark.parametrize(("quota", "expected"), [(499, 499), (500, 500), (501, 500)])
def test_deployed_an_invalid_result_takes_one_above_the_quota(quota: int, expected: int) -> None:
    record = HostVersionFacts(max_jobs_per_day=quota, consecutive_valid=7)
    count_invalid(record, NOW, WEEK, Rules.deployed())
    assert (record.max_jobs_per_day, record.consecutive_valid) == (expected, 0)


@pytest.mark.parametrize(("is_unreplicated", "expected"), [(False, 8), (True, 7)])
def test_deployed_single_results_of_a_replicated_app_bring_no_trust(is_unreplicated: bool, expected: int) -> None:
    record = HostVersionFacts(max_jobs_per_day=1, consecutive_valid=7)
    count_valid(record, NOW, WEEK, Rules.deployed(), is_unreplicated)
    assert (record.max_jobs_per_day, record.consecutive_valid) == (2, expected)
