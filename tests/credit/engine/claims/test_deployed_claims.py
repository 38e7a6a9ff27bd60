"""The formulas of BOINC's server, each by itself; the traces (test_replay.py) show them together."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from credit.engine.averages import Average
from credit.engine.claims.deployed import pegged_mean
from credit.engine.explanation import ClaimRule, GrantRule
from credit.engine.facts import AppFacts, ResultFacts
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import (
    BOUND,
    CREDIT_OF_EST,
    DAY,
    EST,
    about,
    anonymous,
    app,
    decide,
    record,
    result,
    version,
    workunit,
)

PEAK = 2e9  # 1e9 would count as a benchmark that failed


def deployed(**fields: Any) -> AppFacts:
    return app(Rules.deployed(), **fields)


def normal(elapsed_secs: float, **fields: Any) -> ResultFacts:
    """A result whose claim is not approximate: 500 s claim one estimate."""
    return result(record(1000, 1.0), version(1000, 1.0, 1.0), elapsed_secs, peak_flops=PEAK, **fields)


def approximate(elapsed_secs: float, **fields: Any) -> ResultFacts:
    return result(record(), version(), elapsed_secs, peak_flops=PEAK, **fields)


def test_values_are_averaged_about_the_anchor() -> None:
    # anchor 10: weights 1 / (1 + 0) and 1 / (1 + 9); (10 × 1 + 19 × 0.1) / 1.1
    assert pegged_mean([10.0, 19.0], 10.0, 0.1) == about(11.9 / 1.1)
    assert pegged_mean([7.0], 10.0, 0.1) == 7.0
    assert pegged_mean([0.0, 5.0], 0.0, 0.1) == about(0.0)
    with pytest.raises(ValueError, match="nothing"):
        pegged_mean([], 1.0, 0.1)


def test_two_normal_claims_leave_the_approximate_ones_out() -> None:
    # 1 and 3 estimates about 1: weights 1 / 0.1 and 1 / 2.1
    granted = decide(deployed(), normal(500.0), normal(1500.0), approximate(20_000.0)).grant
    assert granted.credit / CREDIT_OF_EST == about((1 / 0.1 + 3 / 2.1) / (1 / 0.1 + 1 / 2.1))
    assert granted.rule is GrantRule.PEGGED_MEAN


def test_one_normal_claim_counts_twice_among_the_approximate() -> None:
    granted = decide(deployed(), normal(1500.0), approximate(500.0)).grant
    assert granted.credit / CREDIT_OF_EST == about((2 * 3 / 2.1 + 1 / 0.1) / (2 / 2.1 + 1 / 0.1))


def test_claims_are_cut_to_the_bound_for_the_grant_only() -> None:
    given = approximate(1e6)
    decision = decide(deployed(), given)
    assert decision.claims[0].claimed_pfc == 1e6 * PEAK
    assert decision.grant.credit == about(BOUND / EST * CREDIT_OF_EST)
    # Nor does it keep the sample out: 1e6 × 2e9 / 1e12
    assert given.version is not None and given.version.samples == [2000.0]
    assert given.version.grants == [(given.sent_at, decision.claims[0].claimed_credit)]


def test_a_claim_above_the_maximum_is_left_out() -> None:
    facts = app(Rules.deployed().with_limits(max_granted_credit=5.0))
    assert decide(facts, normal(500.0), normal(50_000.0)).grant.credit == about(CREDIT_OF_EST)
    # None is left: the estimate is granted.
    assert decide(facts, normal(50_000.0)).grant.credit == about(CREDIT_OF_EST)


@pytest.mark.parametrize(("valid", "host_scale"), [(9, None), (10, 3.0)])
def test_ten_valid_results_in_a_row_bring_trust(valid: int, host_scale: float | None) -> None:
    host = record(1000, 1.0, consecutive_valid=valid)
    [claim] = decide(deployed(host_scale_check=True), result(host, version(1000, 3.0, 1.0), peak_flops=PEAK)).claims
    assert (claim.host_scale, claim.is_approximate) == (host_scale, host_scale is None)


@pytest.mark.parametrize(("host_n", "version_n", "is_scaled"), [(9, 100, False), (10, 99, False), (10, 100, True)])
def test_thresholds_of_the_hosts_factor(host_n: int, version_n: int, is_scaled: bool) -> None:
    [claim] = decide(deployed(), result(record(host_n, 1.0), version(version_n, 30.0, 1.0), peak_flops=PEAK)).claims
    assert claim.host_scale == (10.0 if is_scaled else None)


def test_anonymous_platform_is_never_normal_and_has_no_cap() -> None:
    host = record(10, 0.1)
    [claim] = decide(deployed(min_avg_pfc=5.0), anonymous(host, 500.0, peak_flops=PEAK)).claims
    # 1e12 × 5 / 0.1
    assert (claim.claimed_pfc, claim.is_approximate) == (about(50 * EST), True)


def test_anonymous_platform_without_a_least_average_claims_nothing() -> None:
    [claim] = decide(deployed(), anonymous(record(10, 0.1), 500.0)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.ANONYMOUS_NORMALISED, 0.0)


def test_a_version_without_a_row_is_left_out_and_gets_the_credit_of_the_others() -> None:
    host = record()
    decision = decide(deployed(), normal(500.0), result(host, None, 9000.0))
    assert (decision.claims[1].claim_rule, decision.claims[1].claimed_pfc) == (ClaimRule.LEFT_OUT, None)
    assert decision.grant.credit == about(CREDIT_OF_EST)
    assert (host.pfc.n, host.et.n, host.consecutive_valid) == (0, 0, 0)  # a single result of a replicated app
    # Alone, it gets the estimate.
    assert decide(deployed(), result(host, None, 9000.0)).grant.credit == about(CREDIT_OF_EST)


def test_without_a_record_the_estimate_is_claimed() -> None:
    [claim] = decide(deployed(min_avg_pfc=2.0), anonymous(None)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.NO_VERSION, 2 * EST)


@pytest.mark.parametrize("elapsed", [0.0, -5.0, 9e-7])
def test_cpu_time_stands_for_a_run_time_of_next_to_nothing(elapsed: float) -> None:
    [claim] = decide(deployed(), approximate(elapsed, cpu_secs=500.0)).claims
    assert claim.claimed_pfc == EST


@pytest.mark.parametrize("cpu_secs", [nan, inf, -inf])
def test_impossible_times_claim_the_default(cpu_secs: float) -> None:
    host = record()
    decision = decide(deployed(), result(host, version(), 0.0, peak_flops=PEAK, cpu_secs=cpu_secs))
    assert decision.claims[0].claim_rule is ClaimRule.IMPOSSIBLE
    assert decision.grant.credit == about(CREDIT_OF_EST)
    assert host.turnaround.n == 0


@pytest.mark.parametrize("peak", [0.0, -1.0, 1e9])
def test_an_unknown_speed_is_replaced_and_gives_no_samples(peak: float) -> None:
    host, ran = record(), version()
    [claim] = decide(deployed(), result(host, ran, 100.0, peak_flops=peak)).claims
    assert claim.claimed_pfc == 100 * 4.3e9
    assert (host.pfc.n, host.et.n, host.turnaround.n, ran.samples) == (0, 0, 0, [])


def test_a_runtime_outlier_gives_no_samples() -> None:
    given = approximate(500.0, is_runtime_outlier=True)
    decide(deployed(), given)
    assert given.host_version is not None and given.version is not None
    assert (given.host_version.turnaround.n, given.version.samples) == (0, [])


@pytest.mark.parametrize(("sample", "is_taken"), [(0.99e-4, False), (1.01e-4, True), (0.99e4, True), (1.01e4, False)])
def test_only_sane_ratios_are_samples_of_pfc(sample: float, is_taken: bool) -> None:
    host, ran = record(), version()
    decide(deployed(), result(host, ran, sample * EST / PEAK, peak_flops=PEAK), job=workunit(fpops_bound=1e30))
    assert (host.pfc.n, len(ran.samples)) == (is_taken, is_taken)
    assert (host.et.n, host.turnaround.avg) == (1, DAY)


def test_a_run_time_longer_than_the_job_was_out_is_believed() -> None:
    given = approximate(50_000.0)
    given.sent_at = given.received_at - 10
    [claim] = decide(deployed(), given).claims
    assert claim.claimed_pfc == 50_000 * PEAK
    assert given.host_version is not None and given.host_version.pfc == Average(1, 100.0)
