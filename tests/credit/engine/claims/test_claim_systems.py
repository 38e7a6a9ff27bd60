"""The first two credit systems, the fixed amount, and credit for parts of a job."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from credit.engine.explanation import ClaimRule, GrantRule
from credit.engine.facts import AppFacts, CreditSystem, ReplicaRule, ResultFacts, WorkunitFacts
from credit.engine.grants import due
from credit.engine.partial import MachineTime, PartialClaim, claim_partial
from credit.engine.rules import Rules, credit_of
from tests.support.credit_engine_facts import (
    BOUND,
    CREDIT_OF_EST,
    DAY,
    EST,
    NOW,
    PEAK,
    about,
    app,
    decide,
    record,
    result,
    version,
    workunit,
)

PEAK_FLOPS = CreditSystem.PEAK_FLOPS
ACTUAL_FLOPS = CreditSystem.ACTUAL_FLOPS


def counted(**fields: Any) -> ResultFacts:
    """A result of a processor of 2 GFLOPS with 500 s of CPU time: 1e12 FLOPs by its benchmark."""
    return result(record(), version(), **{"cpu_secs": 500.0, "p_fpops": 2e9, **fields})


def second(**fields: Any) -> AppFacts:
    return app(credit_system=ACTUAL_FLOPS, actual_flops_scale=3.0, benchmark_scale=5.0, **fields)


def test_the_first_system_claims_benchmark_times_cpu_time() -> None:
    decision = decide(app(credit_system=PEAK_FLOPS), counted())
    # 2e9 × 500 = 1e12
    assert decision.grant.credit == about(CREDIT_OF_EST)
    assert decision.claims[0].claim_rule is ClaimRule.PEAK_FLOPS


@pytest.mark.parametrize(
    ("rule", "expected", "grant_rule"),
    [(ReplicaRule.MEAN, 2.0, GrantRule.MEAN_OF_NORMAL), (ReplicaRule.MINIMUM, 1.0, GrantRule.MINIMUM)],
)
def test_the_first_system_grants_the_mean_or_the_least_of_the_claims(
    rule: ReplicaRule, expected: float, grant_rule: GrantRule
) -> None:
    facts = app(credit_system=PEAK_FLOPS, replica_rule=rule)
    granted = decide(facts, counted(), counted(cpu_secs=1500.0, elapsed_secs=3000.0)).grant
    assert granted.credit == about(expected * CREDIT_OF_EST)
    assert granted.rule is grant_rule


def test_the_third_system_never_grants_the_least() -> None:
    facts = app(replica_rule=ReplicaRule.MINIMUM)
    one, three = (result(record(99, 1.0), version(999, 1.0, 1.0), secs) for secs in (1000.0, 3000.0))
    assert decide(facts, one, three).grant.credit == about(2 * CREDIT_OF_EST)


def test_the_first_system_claims_no_more_than_the_devices_can_do() -> None:
    # 100 s with 1 GFLOPS, though it was out for a day: 1e11 of the claimed 1e12
    [claim] = decide(app(credit_system=PEAK_FLOPS), counted(elapsed_secs=100.0)).claims
    assert claim.claimed_pfc == about(EST / 10)
    # A run time of 1,000 s in the 100 s for which it was out
    [claim] = decide(app(credit_system=PEAK_FLOPS), counted(sent_at=NOW - 100)).claims
    assert claim.claimed_pfc == about(EST / 10)


@pytest.mark.parametrize(
    ("fields", "rule", "pfc"),
    [
        ({"fpops_cumulative": 2e12, "fpops_per_cpu_sec": 9e9}, ClaimRule.FLOPS_COUNTED, 3 * 2e12),
        ({"fpops_per_cpu_sec": 9e9}, ClaimRule.FLOPS_PER_CPU_SEC, 3 * 9e9 * 500),
        ({"fpops_cumulative": 0.0, "fpops_per_cpu_sec": 9e9}, ClaimRule.FLOPS_PER_CPU_SEC, 3 * 9e9 * 500),
        ({}, ClaimRule.BENCHMARK, 5 * 2e9 * 500),
    ],
)
def test_the_second_system_takes_the_best_count_there_is(fields: dict[str, float], rule: ClaimRule, pfc: float) -> None:
    [claim] = decide(second(), counted(**fields)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (rule, about(pfc))


@pytest.mark.parametrize("system", [PEAK_FLOPS, ACTUAL_FLOPS])
@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"cpu_secs": nan}, ClaimRule.IMPOSSIBLE),
        ({"cpu_secs": -1.0}, ClaimRule.IMPOSSIBLE),
        ({"p_fpops": inf, "peak_flops": nan}, ClaimRule.IMPOSSIBLE),
        ({"elapsed_secs": nan}, ClaimRule.IMPOSSIBLE),
        ({"cpu_secs": 0.0}, ClaimRule.ZERO_ELAPSED),
        ({"elapsed_secs": 1e200}, ClaimRule.ABOVE_BOUND),
        ({"p_fpops": 1e304, "sent_at": nan}, ClaimRule.ABOVE_BOUND),
    ],
)
def test_the_sanity_check_holds_for_the_older_systems(
    system: CreditSystem, fields: dict[str, float], rule: ClaimRule
) -> None:
    decision = decide(app(credit_system=system), counted(**fields))
    assert decision.claims[0].claim_rule is rule
    assert decision.grant.credit == about(CREDIT_OF_EST)


def test_a_count_of_flops_above_the_bound_is_not_believed() -> None:
    [claim] = decide(second(), counted(fpops_cumulative=2 * BOUND)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.ABOVE_BOUND, EST)


def test_statistics_are_kept_whatever_the_system() -> None:
    for system in CreditSystem:
        given = counted()
        decide(app(credit_system=system, fixed_credit=1.0), given)
        assert given.host_version is not None and given.version is not None
        assert (given.host_version.pfc.avg, given.version.samples) == (1.0, [1.0])


def test_a_fixed_amount_is_granted_exactly() -> None:
    decision = decide(app(credit_system=CreditSystem.FIXED, fixed_credit=0.1), counted(elapsed_secs=nan), counted())
    assert (decision.grant.credit, decision.grant.rule) == (0.1, GrantRule.FIXED)
    assert decision.claims[0].claim_rule is ClaimRule.FIXED_PER_JOB


def test_a_fixed_amount_may_be_per_flop_estimated() -> None:
    decision = decide(app(credit_system=CreditSystem.FIXED, fixed_credit_per_flop=2e-12), counted())
    # 1e12 × 2e-12
    assert decision.grant.credit == about(2)
    assert decision.claims[0].claim_rule is ClaimRule.FIXED_PER_FLOP


def test_a_fixed_amount_is_cut_to_the_maximum_too() -> None:
    facts = app(Rules.published().with_limits(max_granted_credit=5), credit_system=CreditSystem.FIXED, fixed_credit=9.0)
    assert (decide(facts, counted()).grant.credit, decide(facts, counted()).grant.is_cut) == (5, True)


# --- parts ------------------------------------------------------------------------------------------


def long_job(**fields: Any) -> ResultFacts:
    """A job in progress for ten days; a host and a version whose claims are not approximate."""
    given: dict[str, Any] = {"sent_at": NOW - 10 * DAY, "received_at": NOW, **fields}
    return result(record(1000, 1.0), version(1000, 1.0, 0.5), **given)


def claim_part(
    facts: AppFacts, unit: WorkunitFacts, job: ResultFacts, elapsed_secs: float, now: float
) -> PartialClaim | None:
    """The part of a job on a computer that has had nothing else to do."""
    return claim_partial(facts, unit, job, MachineTime(1.0, 1.0, None, job.sent_at), elapsed_secs, now)


def test_a_trickle_claims_what_is_new_in_it() -> None:
    first = claim_part(app(), workunit(), long_job(), 1000.0, NOW)
    assert first is not None
    # 1000 s × 1 GFLOPS × 0.5
    assert first.grant.credit == about(CREDIT_OF_EST / 2)
    assert (first.grant.rule, first.credited_elapsed_secs) == (GrantRule.PARTIAL, 1000)
    job = long_job(partial_elapsed_secs=1000.0, partial_credit=first.grant.credit)
    more = claim_part(app(), workunit(), job, 1500.0, NOW)
    assert more is not None
    assert more.grant.credit == about(CREDIT_OF_EST / 4)


@pytest.mark.parametrize("elapsed", [nan, inf, -inf, -1.0, 0.0, 999.0, 1000.0])
def test_a_trickle_with_nothing_new_brings_nothing(elapsed: float) -> None:
    assert claim_part(app(), workunit(), long_job(partial_elapsed_secs=1000.0), elapsed, NOW) is None


@pytest.mark.parametrize("peak", [nan, inf, 0.0, -1.0])
def test_a_trickle_of_an_impossible_speed_brings_nothing(peak: float) -> None:
    assert claim_part(app(), workunit(), long_job(peak_flops=peak), 1000.0, NOW) is None


def test_a_trickle_claims_no_more_than_the_time_since_the_job_was_sent() -> None:
    part = claim_part(app(), workunit(), long_job(sent_at=NOW - 600), 1000.0, NOW)
    assert part is not None
    assert part.credited_elapsed_secs == 600


@pytest.mark.parametrize("rules", [Rules.published(), Rules.deployed()])
def test_all_parts_together_stay_within_the_bound(rules: Rules) -> None:
    job = long_job()
    total = 0.0
    for elapsed in (40_000.0, 90_000.0, 300_000.0, 1e304):
        part = claim_part(app(rules), workunit(), job, elapsed, NOW)
        if part is not None:
            total += part.grant.credit
            job = replace(job, partial_elapsed_secs=part.credited_elapsed_secs, partial_credit=total)
    # The bound × 0.5, whatever speed the rules take 1 GFLOPS for.
    assert total == about(credit_of(BOUND / 2))


def test_the_final_report_brings_the_rest_and_one_sample_of_the_whole() -> None:
    paid = CREDIT_OF_EST / 2
    job = long_job(elapsed_secs=3000.0, partial_elapsed_secs=1000.0, partial_credit=paid)
    decision = decide(app(), job)
    # 3000 s × 0.5 in all, of which 1000 s are credited
    assert decision.grant.credit == about(1.5 * CREDIT_OF_EST)
    assert due(decision.grant, job) == about(CREDIT_OF_EST)
    assert job.version is not None and job.version.samples == [3.0]


def test_parts_that_brought_more_than_the_grant_are_not_taken_back() -> None:
    job = long_job(elapsed_secs=100.0, partial_elapsed_secs=1000.0, partial_credit=5.0)
    decision = decide(app(), job)
    assert (decision.grant.credit, due(decision.grant, job)) == (about(5.0), 0.0)


@pytest.mark.parametrize("last", [0.0, 1.0])
def test_a_short_run_time_at_the_end_does_not_improve_the_average(last: float) -> None:
    # 1,000 s were credited; 1 s, or none, would be a sample of 0.001 or no sample.
    job = long_job(elapsed_secs=last, partial_elapsed_secs=1000.0, partial_credit=CREDIT_OF_EST / 2)
    decision = decide(app(), job)
    assert job.version is not None and job.version.samples == [1.0]
    assert (decision.grant.credit, due(decision.grant, job)) == (about(CREDIT_OF_EST / 2), about(0))
    to_the_letter = long_job(elapsed_secs=last, partial_elapsed_secs=1000.0, partial_credit=CREDIT_OF_EST / 2)
    decide(app(Rules.letter()), to_the_letter)
    assert to_the_letter.version is not None and to_the_letter.version.samples == ([0.001] if last else [])


def test_trickles_that_brought_more_than_the_replicas_mean_are_kept() -> None:
    paid = 2 * CREDIT_OF_EST
    with_parts = long_job(elapsed_secs=4000.0, partial_elapsed_secs=4000.0, partial_credit=paid)
    decision = decide(app(), with_parts, long_job(elapsed_secs=1000.0))
    # (2 + 0.5) / 2 are less than the 2 that were paid
    assert decision.grant.credit == about(1.25 * CREDIT_OF_EST)
    assert due(decision.grant, with_parts) == 0


def test_replicas_compare_whole_jobs_whatever_trickles_brought() -> None:
    paid = CREDIT_OF_EST / 2
    with_parts = long_job(partial_elapsed_secs=1000.0, partial_credit=paid)
    without = long_job(elapsed_secs=1000.0)
    decision = decide(app(), with_parts, without)
    assert decision.grant.credit == about(paid)
    assert (due(decision.grant, with_parts), due(decision.grant, without)) == (about(0), about(paid))


def test_nothing_is_granted_by_trickle_where_the_claim_would_be_the_default() -> None:
    unknown = replace(long_job(), version=None)
    assert claim_part(app(), workunit(), unknown, 1000.0, NOW) is None
    assert claim_part(app(), workunit(), replace(unknown, is_anonymous=True), 1000.0, NOW) is None
    assert claim_part(app(credit_system=PEAK_FLOPS), workunit(), long_job(), 1000.0, NOW) is None


def test_the_maximum_holds_for_all_parts_together() -> None:
    facts = app(Rules.published().with_limits(max_granted_credit=5.0))
    part = claim_part(facts, workunit(), long_job(partial_elapsed_secs=1.0, partial_credit=4.0), 50_000.0, NOW)
    assert part is not None
    assert (part.grant.credit, part.grant.is_cut) == (1.0, True)


def test_the_amount_given_with_a_job_is_granted_exactly_and_nothing_without_one() -> None:
    facts = app(credit_system=CreditSystem.GIVEN)
    decision = decide(facts, counted(elapsed_secs=nan), counted(), job=workunit(given_credit=12.5))
    assert (decision.grant.credit, decision.grant.rule) == (12.5, GrantRule.GIVEN)
    assert decide(facts, counted()).grant.credit == 0


@pytest.mark.parametrize(("secs", "credited"), [(500.0, 500), (1000.0, 800)])
def test_run_times_up_to_the_limit_are_credited(secs: float, credited: float) -> None:
    facts = app(credit_system=CreditSystem.RUN_TIME, max_credited_secs=800.0)
    [claim] = decide(facts, counted(elapsed_secs=secs)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.RUN_TIME, about(credited * PEAK))


def test_a_run_time_on_devices_of_unknown_speed_claims_the_default() -> None:
    facts = app(credit_system=CreditSystem.RUN_TIME, max_credited_secs=800.0)
    [claim] = decide(facts, counted(peak_flops=nan)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.ZERO_ELAPSED, EST)


@pytest.mark.parametrize(("assigned", "credit"), [(7.0, 7.0), (nan, 0.0), (-1.0, 0.0), (inf, 0.0)])
def test_what_the_project_assigns_is_claimed(assigned: float, credit: float) -> None:
    decision = decide(app(credit_system=CreditSystem.ASSIGNED), counted(assigned_credit=assigned))
    [claim] = decision.claims
    assert (decision.grant.credit, claim.claimed_credit) == (about(credit), about(credit))
    assert claim.claim_rule is ClaimRule.ASSIGNED
