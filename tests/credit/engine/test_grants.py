"""What a workunit is granted from its claims, by the published rules, and what late results get."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest

from credit.engine.averages import Average
from credit.engine.decisions import count_only_invalid, decide_late, decide_set
from credit.engine.explanation import ClaimRule, GrantRule, grant_rule_of
from credit.engine.facts import HostVersionFacts, ResultFacts
from credit.engine.grants import due
from credit.engine.rules import MAX_CREDIT, Rules
from tests.support.credit_engine_facts import (
    CREDIT_OF_EST,
    EST,
    NOW,
    about,
    app,
    decide,
    record,
    result,
    version,
    workunit,
)

RUN_TIMES = (1000.0, 3000.0)


def normal(elapsed_secs: float) -> ResultFacts:
    """A result whose claim is not approximate: its run time in units of 1,000 s is its claim in estimates."""
    return result(record(1000, 1.0), version(1000, 1.0, 1.0), elapsed_secs)


def approximate(elapsed_secs: float) -> ResultFacts:
    return result(record(), version(), elapsed_secs)


def test_a_single_claim_is_granted_approximate_or_not() -> None:
    for single in (normal(3000.0), approximate(3000.0)):
        granted = decide(app(), single).grant
        assert granted.credit == about(3 * CREDIT_OF_EST)
        assert granted.rule is GrantRule.SINGLE_CLAIM


def test_replicas_get_the_mean_of_claims_that_are_not_approximate() -> None:
    # (1 + 3) / 2; the approximate 50 does not count
    granted = decide(app(), normal(1000.0), approximate(50_000.0), normal(3000.0)).grant
    assert granted.credit == about(2 * CREDIT_OF_EST)
    assert granted.rule is GrantRule.MEAN_OF_NORMAL


def test_a_claim_far_above_its_hosts_average_sets_no_others_credit() -> None:
    # Averages of 1, and more than ten times that
    granted = decide(app(), normal(1000.0), normal(10_001.0))
    assert granted.grant.credit == about(CREDIT_OF_EST)
    assert [claim.is_approximate for claim in granted.claims] == [False, True]
    assert decide(app(Rules.letter()), normal(1000.0), normal(10_001.0)).grant.credit == about(5.5005 * CREDIT_OF_EST)


def test_a_job_that_is_long_for_all_brings_all_of_its_credit() -> None:
    granted = decide(app(), normal(11_000.0), normal(11_000.0)).grant
    assert granted.credit == about(11 * CREDIT_OF_EST)
    assert granted.rule is GrantRule.MEAN_OF_SCALED


def test_a_pair_that_nobody_confirmed_gets_the_smaller_claim() -> None:
    granted = decide(app(), normal(3000.0), normal(1000.0), job=workunit(is_unconfirmed=True)).grant
    assert (granted.credit, granted.rule) == (about(CREDIT_OF_EST), GrantRule.UNCONFIRMED_PAIR)


def test_one_normal_claim_among_replicas_is_granted() -> None:
    assert decide(app(), normal(3000.0), approximate(1000.0)).grant.credit == about(3 * CREDIT_OF_EST)


@pytest.mark.parametrize(("min_avg_pfc", "expected"), [(None, 1.0), (2.5, 2.5)])
def test_replicas_with_approximate_claims_only_get_the_default(min_avg_pfc: float | None, expected: float) -> None:
    granted = decide(app(min_avg_pfc=min_avg_pfc), approximate(9000.0), approximate(7000.0)).grant
    assert granted.credit == about(expected * CREDIT_OF_EST)
    assert granted.rule is GrantRule.DEFAULT


def test_one_valid_result_of_a_quorum_of_two_is_replicated() -> None:
    # The others may have come late: an approximate claim alone must not set the grant.
    granted = decide(app(), approximate(9000.0), job=workunit(min_quorum=2)).grant
    assert granted.rule is GrantRule.DEFAULT


def test_an_app_cuts_grants_to_its_maximum() -> None:
    facts = app(Rules.published().with_limits(max_granted_credit=5))
    granted = decide(facts, normal(3000.0)).grant
    assert (granted.credit, granted.is_cut) == (5, True)
    assert grant_rule_of(granted.code) == (GrantRule.SINGLE_CLAIM, True)
    granted = decide(facts, normal(1000.0)).grant
    assert (granted.credit, granted.is_cut) == (about(CREDIT_OF_EST), False)
    assert grant_rule_of(granted.code) == (GrantRule.SINGLE_CLAIM, False)


def test_no_grant_is_beyond_what_can_be_stored() -> None:
    job = workunit(fpops_est=1e25, fpops_bound=1e30)
    assert decide(app(min_avg_pfc=1e29), approximate(0.0), job=job).grant.credit == MAX_CREDIT


def test_a_claim_that_is_no_number_grants_nothing() -> None:
    decision = decide(app(), result(record(), version(1, 1.0, nan)))
    assert decision.grant.credit == 0


def test_late_results_get_the_grant_of_their_workunit_and_feed_the_averages() -> None:
    host, ran = record(), version()
    late = result(host, ran, 9000.0)
    decision = decide_late(app(), workunit(), [late], [], 7.5, NOW)
    assert (decision.grant.credit, decision.grant.rule) == (7.5, GrantRule.LATE_GETS_CANONICAL)
    assert (host.pfc.avg, ran.samples, host.consecutive_valid) == (9.0, [9.0], 1)
    assert ran.grants == [(late.sent_at, 7.5)]


def test_a_versions_recent_average_is_of_what_was_granted() -> None:
    ran = version()
    first, second = result(record(), ran, 9000.0), result(record(), ran, 100.0)
    decide(app(), first, second)
    assert ran.grants == [(first.sent_at, about(CREDIT_OF_EST))] * 2


def test_wrong_results_are_counted_and_claim_nothing() -> None:
    wrong = record(consecutive_valid=5)
    decision = decide_set(app(), workunit(), [normal(1000.0)], [wrong, None], NOW)
    assert len(decision.claims) == 1
    assert (wrong.consecutive_valid, wrong.error_rate, wrong.pfc.n) == (0, about(0.2), 0)
    count_only_invalid(app(), workunit(), [wrong, None], NOW)
    assert wrong.error_rate == about(0.3)


def test_validity_is_counted_before_claims() -> None:
    # Its samples are clean by this very result, so it has its factor already.
    host = record(1000, 1.0, clean_pfc=Average(), waiting_pfc=Average(10, 1.0), samples_since=NOW - 1)
    [claim] = decide(app(host_scale_check=True), result(host, version(1000, 3.0, 1.0))).claims
    assert (claim.host_scale, claim.is_approximate) == (3.0, False)


def test_if_only_hosts_that_fail_often_claim_the_least_claim_counts() -> None:
    """One may exaggerate the short jobs that it picks: here fivefold, so that they look like the version's average."""
    ran = version(1000, 1.0, 1.0)

    def host(average: float, **fields: Any) -> HostVersionFacts:
        return record(1000, average, clean_pfc=Average(), **fields)

    def granted(*hosts: HostVersionFacts) -> tuple[float, GrantRule]:
        jobs = [result(one, ran, 1000 * (one.pfc.avg or 0.0)) for one in hosts]
        grant = decide(app(host_scale_check=True), *jobs).grant
        return grant.credit, grant.rule

    often: dict[str, Any] = {"failing_share": 0.5}
    # Claims of 1 and 0.2 of the estimate. A host of which too little is known is believed before one that fails often.
    assert granted(host(1.0, **often), host(0.2, **often)) == (about(0.2 * CREDIT_OF_EST), GrantRule.MINIMUM)
    assert granted(host(1.0, **often), host(0.2)) == (about(0.2 * CREDIT_OF_EST), GrantRule.MEAN_OF_SCALED)
    assert granted(host(1.0), host(0.2)) == (about(0.6 * CREDIT_OF_EST), GrantRule.MEAN_OF_SCALED)


@pytest.mark.parametrize(("rules", "credit"), [(Rules.published(), 0.2), (Rules.letter(), 1.1)])
def test_claims_of_hosts_on_probation_count_if_there_are_no_others(rules: Rules, credit: float) -> None:
    """A job that is shorter than its estimate tells: the default would pay those who pick such jobs.

    The app's average is 1.1, the job's sample 0.2.
    """
    facts, ran = app(rules, host_scale_check=True, min_avg_pfc=1.1), version(1000, 1.1, 1.0)
    results = [result(record(1000, 1.1, scale_probation=True), ran, 200.0) for _ in range(2)]
    decision = decide_set(facts, workunit(min_quorum=2), results, [], NOW)
    assert all(claim.is_approximate for claim in decision.claims)
    assert decision.grant.credit == pytest.approx(credit * CREDIT_OF_EST)


def test_deployed_rules_count_a_first_set_after_its_claims_and_a_late_result_before() -> None:
    facts = app(Rules.deployed(), host_scale_check=True)
    ran = version(1000, 3.0, 1.0)
    job = workunit(target_nresults=2)
    [claim] = decide_set(facts, job, [result(record(1000, 1.0, consecutive_valid=9), ran)], [], NOW).claims
    assert (claim.on_probation, claim.host_scale) == (True, None)
    late = result(record(1000, 1.0, consecutive_valid=9), ran)
    [claim] = decide_late(facts, job, [late], [], 1.0, NOW).claims
    assert (claim.on_probation, claim.host_scale) == (False, 3.0)


def test_the_cheat_of_one_replica_does_not_touch_the_other() -> None:
    honest = normal(1000.0)
    decision = decide(app(min_avg_pfc=1.0), honest, approximate(1e300))
    assert [claim.claim_rule for claim in decision.claims] == [ClaimRule.VERSION_AND_HOST, ClaimRule.ABOVE_BOUND]
    assert due(decision.grant, honest) == about(CREDIT_OF_EST)
    assert decision.claims[1].claimed_pfc == EST
