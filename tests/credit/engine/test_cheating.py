"""Hosts that cheat, and honest ones, over many jobs: the document's "Cheat prevention" as it works out.

Jobs are granted singly, so a host's claims are its credit. The version's average stays at 1 (or what a test says), as
one host among many cannot move it much.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from credit.engine.facts import AppFacts, HostVersionFacts, VersionFacts
from credit.engine.probation import count_error, count_sent, is_on_probation
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import (
    CREDIT_OF_EST,
    DAY,
    EST,
    NOW,
    PEAK,
    WEEK,
    app,
    decide,
    record,
    result,
    version,
    workunit,
)


def credit(facts: AppFacts, host: HostVersionFacts, ran: VersionFacts, flops: float, now: float = NOW) -> float:
    """What a job that claims this many FLOPs is granted, in units of an estimate's."""
    given = result(host, ran, flops / PEAK, sent_at=now - DAY, received_at=now)
    job = workunit(delay_bound_secs=WEEK)
    return decide(facts, given, job=job, now=now).grant.credit / CREDIT_OF_EST


def settled(avg: float = 1.0) -> VersionFacts:
    return version(100_000, avg, 1.0)


@pytest.mark.parametrize(("rules", "first"), [(Rules.published(), 1), (Rules.letter(), 10)])
def test_a_host_that_exaggerates_from_its_start_has_a_factor_after_ten_jobs(rules: Rules, first: float) -> None:
    host, ran, facts = record(), settled(), app(rules, min_avg_pfc=1.0)
    credits = [credit(facts, host, ran, 10 * EST) for _ in range(500)]
    # Ten jobs without a factor: the default, or to the letter what it says. Then 1 / 10.
    assert credits[:10] == [pytest.approx(first)] * 10
    assert credits[10:] == [pytest.approx(1)] * 490


def test_to_the_letter_a_host_that_turns_to_exaggerating_falls_back_to_its_honest_credit() -> None:
    host, ran, facts = record(10, 1.0), settled(), app(Rules.letter(), min_avg_pfc=1.0)
    credits = [credit(facts, host, ran, 10 * EST) for _ in range(500)]
    assert credits[0] == pytest.approx(10)
    assert credits == sorted(credits, reverse=True)
    # The average after 500 jobs: 10 - 9 × 0.99^499 = 9.94
    assert credits[-1] == pytest.approx(1.006, abs=1e-3)


def test_a_one_time_cheat_gains_at_most_the_default() -> None:
    host, ran, facts = record(100, 1.0), settled(), app(min_avg_pfc=1.0)
    assert credit(facts, host, ran, 1e304 * PEAK) == pytest.approx(1)
    assert credit(facts, host, ran, EST) == pytest.approx(1)


def test_holding_jobs_back_to_claim_the_time_gains_nothing() -> None:
    # Run times that are longer than the job was out are cut and leave no sample: they claim the default at most.
    host, ran, facts = record(100, 1.0), settled(), app(min_avg_pfc=1.0)
    for _ in range(50):
        given = result(host, ran, DAY + 1, sent_at=NOW - DAY)
        assert decide(facts, given).grant.credit == pytest.approx(CREDIT_OF_EST)


@pytest.mark.parametrize("secs", [1e-300, 1e-9, 1.0])
@pytest.mark.parametrize("checks", [True, False])
def test_next_to_nothing_for_the_first_job_raises_no_factor_for_long(secs: float, checks: bool) -> None:
    """A cap from the average so far would let it rise by a tenth with each job, from 0 as good as never."""
    host, ran, facts = HostVersionFacts(), settled(), app(min_avg_pfc=1.0, host_scale_check=checks)
    credit(facts, host, ran, secs * PEAK)
    credits = [credit(facts, host, ran, EST, NOW + number * DAY) for number in range(1, 500)]
    # The average of the first ten is 0.9.
    assert max(credits) <= 1 / 0.9 + 1e-9
    assert sum(credits) <= 499 + 12


# --- picking jobs -----------------------------------------------------------------------------------
# Half of the jobs take 0.2, half 2 times the estimate; the version's average is 1.1.
SHORT, LONG = 0.2 * EST, 2 * EST


def days(ndays: int, day: Callable[[float], float]) -> float:
    """The sum of what each day brings; three jobs of the day are sent eight hours apart."""
    return sum(day(NOW + hours * 3600) for hours in range(0, ndays * 24, 8))


def sent(host: HostVersionFacts, now: float) -> None:
    count_sent(host, now, WEEK, datetime.fromtimestamp(now, UTC).date())


def picked(facts: AppFacts, ndays: int) -> float:
    """Credit per job's worth of FLOPs of a host that fails all long jobs."""
    host, ran = HostVersionFacts(), settled(1.1)
    flops = 0.0

    def jobs(now: float) -> float:
        nonlocal flops
        sent(host, now)
        if int(now // (8 * 3600)) % 2:
            count_error(host, now + 60, WEEK, facts.rules)
            return 0.0
        flops += SHORT
        return credit(facts, host, ran, SHORT, now + SHORT / PEAK)

    return days(ndays, jobs) / (flops / EST)


def test_picking_short_jobs_pays_where_the_check_is_off() -> None:
    # After ten jobs its factor is 1.1 / 0.2 = 5.5.
    assert picked(app(min_avg_pfc=1.1), 90) > 4


def test_picking_short_jobs_gains_nothing_where_the_check_is_on() -> None:
    assert picked(app(min_avg_pfc=1.1, host_scale_check=True), 90) <= 1 + 1e-9


def test_failing_now_and_then_does_not_pay_a_host_that_exaggerates() -> None:
    # On probation the factor is at most 1, not gone: 1 / 10 of a tenfold claim.
    facts, host, ran = app(min_avg_pfc=1.0, host_scale_check=True), record(10, 10.0), settled()
    for _ in range(20):
        count_error(host, NOW, WEEK, facts.rules)
        assert credit(facts, host, ran, 10 * EST) == pytest.approx(1)


def test_a_steady_honest_host_leaves_probation_within_three_delay_bounds_and_gets_its_factor() -> None:
    # Efficient: its jobs claim half of what others' do.
    facts, host, ran = app(min_avg_pfc=1.0, host_scale_check=True), HostVersionFacts(), settled()
    left_at = None
    credits = []
    for hours in range(0, 30 * 24, 8):
        now = NOW + hours * 3600
        sent(host, now)
        credits.append(credit(facts, host, ran, EST / 2, now + 500))
        if left_at is None and not is_on_probation(host, now + 500, facts.rules):
            left_at = now
    assert left_at is not None
    # It collects samples for a delay bound, and they wait for another.
    assert 2 * WEEK <= left_at - NOW <= 3 * WEEK
    assert credits[0] == pytest.approx(0.5)
    assert credits[-1] == pytest.approx(1)


@pytest.mark.parametrize(("rules", "during"), [(Rules.letter(), 0.5), (Rules.published(), 1.0)])
def test_an_honest_host_keeps_its_factor_after_an_error_but_to_the_letter(rules: Rules, during: float) -> None:
    facts, host, ran = app(rules, min_avg_pfc=1.0, host_scale_check=True), record(10, 0.5), settled()
    assert credit(facts, host, ran, EST / 2) == pytest.approx(1)
    count_error(host, NOW, WEEK, facts.rules)
    assert credit(facts, host, ran, EST / 2, NOW + WEEK - 1) == pytest.approx(during)
    assert credit(facts, host, ran, EST / 2, NOW + WEEK + 1) == pytest.approx(1)


def test_reporting_next_to_nothing_on_tiny_jobs_pays_at_most_ten_times_on_big_ones() -> None:
    # Averages are not weighted by the size of jobs: the cap is what limits this.
    facts, host, ran = app(min_avg_pfc=1.0), record(), settled()
    for _ in range(100):
        credit(facts, host, ran, 0.001 * EST)
    assert credit(facts, host, ran, EST) == pytest.approx(10)
