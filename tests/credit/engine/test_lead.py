"""How far a record's claims may exceed those of usual jobs in total: run times that change are paid no further."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import Any

import pytest

from credit.engine.averages import AverageWithVariance
from credit.engine.explanation import GrantRule
from credit.engine.facts import HostVersionFacts
from credit.engine.lead import room_jobs
from credit.engine.rules import Rules, credit_of
from tests.support.credit_engine_facts import about, app, decide, record, result, version, workunit

USUAL = credit_of(1e12)
LETTER = Rules.letter()
RULES = Rules.published()


def settled(**fields: Any) -> HostVersionFacts:
    return record(1000, 1.0, et=AverageWithVariance(1000, 1e-9), **fields)


def credits(host: HostVersionFacts, times: list[float], rules: Rules = RULES, **fields: Any) -> list[float]:
    """The credit of each job, of a usual one's, by its run time over the usual one."""
    facts, job = app(rules, min_avg_pfc=1.0), workunit(fpops_bound=1e15)
    used = None if fields.get("is_anonymous") else version(100_000, 1.0, 1.0)
    given = (result(host, used, 1000 * time, **fields) for time in times)
    return [decide(facts, one, job=job).grant.credit / USUAL for one in given]


@pytest.mark.parametrize("is_anonymous", [False, True])
def test_run_times_that_are_ten_times_too_long_gain_forty_jobs_and_no_more(is_anonymous: bool) -> None:
    brought = credits(settled(), [10.0] * 1000, is_anonymous=is_anonymous)
    assert sum(brought) == about(1040.0)
    # To the letter: 100 × ln(10) = 230
    assert sum(credits(settled(), [10.0] * 1000, LETTER)) == about(1230.0, rel=0.01)


def test_who_goes_up_and_down_again_and_again_gains_no_more_either() -> None:
    times = ([10.0] * 50 + [1.0] * 150) * 10
    assert sum(credits(settled(), times)) < len(times) + 40 + 1e-6


def test_a_record_may_be_ahead_by_three_tenths_of_the_jobs_that_it_had() -> None:
    """First run times of a hundredth, and then honest ones: to the letter a factor of 10, and 3 times the credit."""
    times = [0.01] * 10 + [1.0] * 100
    assert sum(credits(record(), times)) <= 100 + 33
    assert sum(credits(record(), times, LETTER)) > 300


def test_rare_claims_of_ten_times_the_usual_bring_forty_jobs_in_all() -> None:
    times = [10.0 if number % 50 == 49 else 1.0 for number in range(2000)]
    assert fmean(credits(settled(), times)) <= 1.02


def test_what_is_cut_is_explained_and_not_counted() -> None:
    host = settled(lead_jobs=39.5)
    given = decide(app(min_avg_pfc=1.0), result(host, version(999, 1.0, 1.0), 3000.0))
    assert (given.grant.rule, given.grant.credit) == (GrantRule.SINGLE_AHEAD, about(1.5 * USUAL))
    assert given.claims[0].claimed_credit == about(3 * USUAL)
    assert host.lead_jobs == 40.0


@pytest.mark.parametrize(("lead", "is_approximate"), [(0.0, False), (39.9, True)])
def test_a_replica_that_is_too_far_ahead_sets_no_others_credit(lead: float, is_approximate: bool) -> None:
    used = version(999, 1.0, 1.0)
    ahead = result(settled(lead_jobs=lead), used, 3000.0)
    given = decide(app(min_avg_pfc=1.0), ahead, result(settled(), used, 1000.0))
    assert given.claims[0].is_approximate is is_approximate
    assert given.grant.credit == about(USUAL if is_approximate else 2 * USUAL)


def test_a_job_that_is_long_for_all_is_paid_though_all_are_ahead() -> None:
    used = version(999, 1.0, 1.0)
    given = decide(app(min_avg_pfc=1.0), *(result(settled(lead_jobs=40.0), used, 3000.0) for _ in range(2)))
    assert (given.grant.rule, given.grant.credit) == (GrantRule.MEAN_OF_SCALED, about(3 * USUAL))


@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_honest_run_times_that_differ_by_chance_lose_less_than_a_hundredth(spread: float) -> None:
    rng = Random(4)
    brought, to_compare = 0.0, 0.0
    for _ in range(20):
        times = [rng.lognormvariate(0, spread) for _ in range(1000)]
        brought += sum(credits(record(), times))
        to_compare += sum(credits(record(), times, replace(RULES, max_lead_jobs=None)))
    assert 0.99 < brought / to_compare <= 1


def test_a_computer_that_is_slow_by_turns_loses_nothing_after_the_first_turn() -> None:
    """Run times that double for 300 jobs, and then are as before: what it loses then it may gain the next time."""
    turn = [1.0] * 300 + [2.0] * 300
    host = settled()
    sums = [sum(credits(host, turn)) for _ in range(4)]
    for before, after in pairwise(sums[1:]):
        assert after == about(before, rel=0.01)
    assert sums[-1] == about(600.0, rel=0.03)


def test_run_times_that_start_again_now_and_then_are_made_up_for_by_later_jobs() -> None:
    """Every fifth job names a sixth of its run time; the average follows in the first few hundred jobs."""
    times = [1 / 6 if number % 5 == 0 else 1.0 for number in range(1000)]
    brought = credits(settled(), times)
    assert sum(brought[500:]) == about(500.0, rel=0.01)


@pytest.mark.parametrize(
    ("pfc_n", "et_n", "lead", "room"),
    [
        # Three tenths of ten jobs; after another peak the jobs before still count, and so do those without a run time.
        (10, 10, 0.0, 3.0),
        (0, 10, 0.0, 3.0),
        (10, 0, 0.0, 3.0),
        # Ten times a usual job's at most, and nothing when it is as far ahead as it may be, or farther after a reset.
        (1000, 1000, 0.0, 9.0),
        (1000, 1000, 40.0, 0.0),
        (10, 10, 30.0, 0.0),
    ],
)
def test_a_claim_may_exceed_a_usual_job_by_what_is_left(pfc_n: int, et_n: int, lead: float, room: float) -> None:
    host = record(pfc_n, 1.0, et=AverageWithVariance(et_n, 1e-9), lead_jobs=lead)
    assert room_jobs(host, RULES) == about(room)


def test_a_usual_claim_of_a_record_that_may_get_no_further_counts() -> None:
    ahead = [settled(lead_jobs=40.0) for _ in range(2)]
    decision = decide(app(), *(result(host, version(100_000, 1.0, 1.0)) for host in ahead))
    assert (decision.grant.rule, decision.grant.credit) == (GrantRule.MEAN_OF_NORMAL, about(USUAL))
