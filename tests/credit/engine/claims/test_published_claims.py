"""What a valid result claims by the published rules: each case of the document's summary, with its arithmetic."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest

from credit.engine.averages import Average
from credit.engine.explanation import ClaimRule
from credit.engine.facts import HostVersionFacts, ResultFacts, VersionFacts
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import (
    BOUND,
    CREDIT_OF_EST,
    DAY,
    EST,
    NOW,
    PEAK,
    anonymous,
    app,
    decide,
    record,
    result,
    version,
    workunit,
)

MANY = 1000


def test_a_cobblestone_is_a_two_hundredth_of_a_gflops_day() -> None:
    # a day at 1 GFLOPS: 86400e9 FLOPs = 200 credits
    decision = decide(app(), result(record(), version(), DAY), job=workunit(fpops_bound=1e15))
    assert decision.grant.credit == pytest.approx(200)


def test_a_claim_is_run_time_times_peak_flops() -> None:
    [claim] = decide(app(), result(record(), version(), 500.0)).claims
    assert claim.claim_rule is ClaimRule.UNSCALED
    assert claim.raw_pfc == claim.claimed_pfc == 500 * PEAK
    # 5e11 × 200 / 86400e9
    assert claim.claimed_credit == pytest.approx(1.1574074074)
    assert claim.is_approximate


def test_version_and_host_scale_a_claim() -> None:
    # 1e12 × 0.5 × (3 / 2) = 0.75e12
    [claim] = decide(app(), result(record(MANY, 2.0), version(MANY, 3.0, 0.5))).claims
    assert claim.claim_rule is ClaimRule.VERSION_AND_HOST
    assert (claim.version_scale, claim.host_scale) == (0.5, 1.5)
    assert claim.claimed_pfc == pytest.approx(0.75e12)
    assert not claim.is_approximate


def test_an_explanation_has_the_numbers_read_before_the_workunit() -> None:
    host, ran = record(20, 2.0), version(300, 3.0, 0.5)
    [claim] = decide(app(min_avg_pfc=1.5), result(host, ran)).claims
    assert (claim.version_pfc_n, claim.version_pfc_avg, claim.host_pfc_n, claim.host_pfc_avg) == (300, 3.0, 20, 2.0)
    assert (claim.min_avg_pfc, claim.elapsed_secs) == (1.5, 1000)
    assert host.pfc.n == 21


@pytest.mark.parametrize(
    ("host_n", "version_n", "host_scale"),
    [(9, 100, None), (10, 99, None), (10, 100, 1.5), (11, 101, 1.5)],
)
def test_a_host_is_scaled_from_ten_and_a_hundred_samples_on(
    host_n: int, version_n: int, host_scale: float | None
) -> None:
    [claim] = decide(app(), result(record(host_n, 2.0), version(version_n, 3.0, 0.5))).claims
    assert claim.host_scale == host_scale
    assert claim.is_approximate is (host_scale is None)


@pytest.mark.parametrize(
    ("host_avg", "host_scale"), [(0.31, 3 / 0.31), (0.3, 10), (0.29, 10), (1e-300, 10), (300, 0.01)]
)
def test_a_hosts_factor_is_at_most_ten(host_avg: float, host_scale: float) -> None:
    [claim] = decide(app(), result(record(MANY, host_avg), version(MANY, 3.0, 0.5))).claims
    assert claim.host_scale == pytest.approx(host_scale)


def test_an_app_sets_its_own_cap_and_thresholds() -> None:
    rules = Rules.published().with_limits(max_host_scale=2, min_host_samples=3, min_version_samples=5)
    [claim] = decide(app(rules), result(record(3, 0.1), version(5, 3.0, 0.5))).claims
    assert claim.host_scale == 2


@pytest.mark.parametrize(("host_avg", "version_avg"), [(0.0, 3.0), (2.0, 0.0), (None, 3.0), (2.0, None)])
def test_an_average_of_zero_scales_nothing(host_avg: float | None, version_avg: float | None) -> None:
    [claim] = decide(app(), result(record(MANY, host_avg), version(MANY, version_avg, 0.5))).claims
    assert (claim.claim_rule, claim.host_scale) == (ClaimRule.VERSION_ONLY, None)
    assert claim.claimed_pfc == EST / 2
    assert claim.is_approximate


def test_without_a_version_scale_a_claim_is_approximate() -> None:
    [claim] = decide(app(), result(record(MANY, 2.0), version(MANY, 3.0))).claims
    assert (claim.claim_rule, claim.is_approximate) == (ClaimRule.HOST_ONLY, True)
    assert claim.claimed_pfc == 1.5 * EST


def test_a_version_without_a_scale_claims_the_default_where_the_least_average_is_known() -> None:
    host, ran = record(MANY, 2.0), version(99, 30.0)
    [claim] = decide(app(min_avg_pfc=2.5), result(host, ran, 20_000.0)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.UNSCALED_VERSION, 2.5 * EST)
    assert (claim.raw_pfc, claim.is_approximate) == (20 * EST, True)
    # Its sample counts all the same, or it would never have a scale.
    assert (host.pfc.n, ran.samples) == (MANY + 1, [20.0])
    [claim] = decide(app(Rules.letter(), min_avg_pfc=2.5), result(host, ran, 20_000.0)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.UNSCALED, 20 * EST)


@pytest.mark.parametrize(("min_avg_pfc", "default"), [(None, EST), (2.5, 2.5 * EST)])
def test_above_the_bound_the_default_is_claimed(min_avg_pfc: float | None, default: float) -> None:
    host, ran = record(MANY, 2.0, error_rate=0.01), version(MANY, 3.0, 0.5)
    [claim] = decide(app(min_avg_pfc=min_avg_pfc), result(host, ran, 100_001.0)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.ABOVE_BOUND, default)
    assert claim.is_approximate


def test_a_claim_above_the_bound_moves_no_average_and_brings_suspicion() -> None:
    host, ran = record(MANY, 2.0, error_rate=0.01, host_scale_time=NOW - DAY), version(MANY, 3.0, 0.5)
    decide(app(), result(host, ran, 1e9), job=workunit(delay_bound_secs=DAY))
    assert (host.pfc, ran.samples) == (Average(MANY, 2.0), [])
    assert (host.et.n, host.turnaround.n) == (0, 0)
    assert (host.scale_probation, host.host_scale_time, host.error_rate) == (True, NOW + DAY, 0.1)


def test_exactly_the_bound_is_believed() -> None:
    [claim] = decide(app(), result(record(), version(), 50_000.0), job=workunit(fpops_bound=50_000 * PEAK)).claims
    assert claim.claim_rule is ClaimRule.UNSCALED


def test_a_one_time_cheat_gets_the_default() -> None:
    decision = decide(app(min_avg_pfc=1.0), result(record(MANY, 1.0), version(MANY, 1.0, 1.0), 1e295))
    assert decision.grant.credit == pytest.approx(CREDIT_OF_EST)


def test_nothing_known_of_the_version_claims_the_default() -> None:
    for unknown in (result(None, version()), result(record(), None), anonymous(None)):
        [claim] = decide(app(min_avg_pfc=2.0), unknown).claims
        assert (claim.claim_rule, claim.claimed_pfc, claim.is_approximate) == (ClaimRule.NO_VERSION, 2 * EST, True)


def test_an_unknown_version_moves_no_average() -> None:
    host = record()
    decide(app(), result(host, None))
    assert host.pfc.n == 0


@pytest.mark.parametrize(("n", "rule"), [(9, ClaimRule.ANONYMOUS_DEFAULT), (10, ClaimRule.ANONYMOUS_NORMALISED)])
def test_anonymous_platform_is_normalised_from_ten_samples_on(n: int, rule: ClaimRule) -> None:
    [claim] = decide(app(min_avg_pfc=2.0), anonymous(record(n, 4.0))).claims
    assert claim.claim_rule is rule
    # normalised: 1e12 × 2 / 4; else the default 2 × 1e12
    assert claim.claimed_pfc == (0.5 * EST if n == 10 else 2 * EST)
    assert claim.is_approximate is (n == 9)


def test_anonymous_platform_without_a_least_average_claims_the_estimate() -> None:
    [claim] = decide(app(), anonymous(record(MANY, 4.0), 700.0)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.ANONYMOUS_DEFAULT, EST)


def test_anonymous_platform_has_the_cap_too() -> None:
    [claim] = decide(app(min_avg_pfc=50.0), anonymous(record(MANY, 1.0))).claims
    assert claim.host_scale == 10


def test_anonymous_platform_on_probation_claims_the_default() -> None:
    host = record(MANY, 4.0, scale_probation=True)
    [claim] = decide(app(min_avg_pfc=2.0, host_scale_check=True), anonymous(host)).claims
    assert (claim.claim_rule, claim.on_probation) == (ClaimRule.ANONYMOUS_DEFAULT, True)
    assert host.pfc.n == MANY + 1


@pytest.mark.parametrize(("host_avg", "host_scale"), [(1.0, 1.0), (6.0, 0.5)])
def test_on_probation_the_hosts_factor_is_at_most_one(host_avg: float, host_scale: float) -> None:
    host = record(MANY, host_avg, scale_probation=True)
    [claim] = decide(app(host_scale_check=True), result(host, version(MANY, 3.0, 0.5))).claims
    assert (claim.host_scale, claim.on_probation, claim.is_approximate) == (host_scale, True, True)


def test_to_the_letter_the_factor_is_at_most_one_until_the_host_scale_time() -> None:
    facts, ran = app(Rules.letter(), host_scale_check=True), version(MANY, 3.0, 0.5)
    [before] = decide(facts, result(record(MANY, 1.0, host_scale_time=NOW + 1), ran)).claims
    [at] = decide(facts, result(record(MANY, 1.0, host_scale_time=NOW), ran)).claims
    assert (before.host_scale, at.host_scale) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("clean", "whole", "share", "scale", "on_probation"),
    [
        # An honest host of an average of 2, where the version's is 3, keeps its factor while it fails a few jobs.
        (2.0, 2.0, 0.05, 1.5, False),
        # One that left its long jobs to others has a quarter more than its clean samples bear out: 1.25 × 3 / 2.
        (2.0, 1.0, 0.05, 1.875, False),
        # Clean samples bear out less than 1: 1.25 × 3 / 4 = 0.9. The whole average then may bring it to 1, not more.
        (4.0, 1.0, 0.05, 1.0, False),
        (4.0, 3.75, 0.05, 0.8, False),
        # One that exaggerates lately: 3 / 6.
        (3.0, 6.0, 0.05, 0.5, False),
        # One that fails often.
        (2.0, 2.0, 0.051, 1.0, True),
        (2.0, 6.0, 0.051, 0.5, True),
    ],
)
def test_only_clean_samples_raise_the_factor(
    clean: float, whole: float, share: float, scale: float, on_probation: bool
) -> None:
    host = record(40, whole, clean_pfc=Average(20, clean), failing_share=share / 0.99)
    [claim] = decide(app(host_scale_check=True), result(host, version(MANY, 3.0, 0.5))).claims
    assert claim.host_scale == pytest.approx(scale)
    assert (claim.is_approximate, claim.on_probation, claim.fails_often) == (on_probation,) * 3
    assert (claim.host_pfc_n, claim.host_pfc_avg) == (40, whole)


def test_a_hosts_own_program_is_held_to_its_clean_samples_too() -> None:
    facts = app(min_avg_pfc=3.0, host_scale_check=True)
    # 1.25 × 3 / 2, not 3 / 1
    [claim] = decide(facts, anonymous(record(40, 1.0, clean_pfc=Average(20, 2.0)))).claims
    assert claim.host_scale == pytest.approx(1.875)
    [claim] = decide(facts, anonymous(record(40, 1.0, clean_pfc=Average(20, 2.0), failing_share=0.06))).claims
    assert claim.claim_rule is ClaimRule.ANONYMOUS_DEFAULT


@pytest.mark.parametrize(("average", "scale"), [(1.0, 1.0), (6.0, 0.5)])
def test_without_enough_clean_samples_the_factor_is_at_most_one_and_the_claim_approximate(
    average: float, scale: float
) -> None:
    host = record(MANY, average, clean_pfc=Average(9, average))
    [claim] = decide(app(host_scale_check=True), result(host, version(MANY, 3.0, 0.5))).claims
    assert (claim.host_scale, claim.is_approximate, claim.on_probation) == (scale, True, True)
    assert not claim.fails_often


def test_samples_are_not_clean_at_once() -> None:
    host = record()
    decide(app(), result(host, version(), 2000.0))
    assert (host.pfc, host.recent_pfc, host.clean_pfc) == (Average(1, 2.0), Average(1, 2.0), Average())


def test_probation_does_not_matter_where_it_is_off() -> None:
    host = record(MANY, 1.0, scale_probation=True)
    [claim] = decide(app(), result(host, version(MANY, 3.0, 0.5))).claims
    assert (claim.host_scale, claim.on_probation, claim.is_approximate) == (3.0, False, False)


@pytest.mark.parametrize("elapsed", [nan, inf, -inf, -1.0])
@pytest.mark.parametrize("peak", [PEAK, nan])
def test_an_impossible_run_time_claims_the_default(elapsed: float, peak: float) -> None:
    host, ran = record(MANY, 2.0), version(MANY, 3.0, 0.5)
    decision = decide(app(min_avg_pfc=2.0), result(host, ran, elapsed, peak_flops=peak))
    assert decision.claims[0].claim_rule is ClaimRule.IMPOSSIBLE
    assert decision.grant.credit == pytest.approx(2 * CREDIT_OF_EST)
    assert (host.pfc.n, ran.samples) == (MANY, [])


@pytest.mark.parametrize(("elapsed", "peak"), [(nan, PEAK), (inf, PEAK), (-1.0, PEAK), (1000.0, 0.0), (1e304, PEAK)])
def test_impossible_numbers_count_as_a_failed_sanity_check(elapsed: float, peak: float) -> None:
    host = record(MANY, 2.0, error_rate=0.01, host_scale_time=NOW - DAY)
    job = workunit(delay_bound_secs=DAY)
    decide(app(), result(host, version(MANY, 3.0, 0.5), elapsed, peak_flops=peak), job=job)
    assert (host.scale_probation, host.host_scale_time, host.error_rate) == (True, NOW + DAY, 0.1)


@pytest.mark.parametrize("peak", [inf, 0.0, -1.0, -inf])
def test_an_impossible_speed_claims_the_default(peak: float) -> None:
    host = record(MANY, 2.0)
    [claim] = decide(app(), result(host, version(MANY, 3.0), peak_flops=peak)).claims
    assert (claim.claim_rule, claim.claimed_pfc, claim.raw_pfc) == (ClaimRule.IMPOSSIBLE, EST, None)
    assert host.pfc.n == MANY


def test_a_gpu_of_unknown_speed_claims_the_default_and_nobody_is_suspected() -> None:
    host, ran = record(MANY, 2.0, error_rate=0.01, host_scale_time=NOW - DAY), version(MANY, 20.0, 0.1)
    for _ in range(60):
        [claim] = decide(app(min_avg_pfc=2.0), result(host, ran, 2000.0, peak_flops=nan)).claims
        assert (claim.claim_rule, claim.claimed_pfc, claim.is_approximate) == (ClaimRule.UNKNOWN_PEAK, 2 * EST, True)
    assert (host.pfc, ran.samples) == (Average(MANY, 2.0), [])
    assert (host.scale_probation, host.failing_share) == (False, 0.0)
    assert host.error_rate == 0.01
    # Its run times are known all the same.
    assert host.et.n == 60
    assert host.et.avg == pytest.approx(2000 / EST)


@pytest.mark.parametrize("peak", [1e304, 1e308])
def test_a_huge_speed_is_above_the_bound(peak: float) -> None:
    [claim] = decide(app(), result(record(), version(), 1e304, peak_flops=peak)).claims
    assert (claim.claim_rule, claim.raw_pfc) == (ClaimRule.ABOVE_BOUND, None)


def test_zero_run_time_claims_the_default_and_gives_no_sample() -> None:
    host, ran = record(), version()
    [claim] = decide(app(), result(host, ran, 0.0)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.ZERO_ELAPSED, EST)
    assert (host.pfc.n, host.et.n, ran.samples) == (0, 0, [])


def test_a_run_time_longer_than_the_job_was_out_is_cut_and_gives_no_sample() -> None:
    host, ran = record(MANY, 3.0), version(MANY, 3.0, 1.0)
    [claim] = decide(app(), result(host, ran, 2000.0, sent_at=NOW - 800)).claims
    # 800 s × 1 GFLOPS
    assert (claim.claimed_pfc, claim.elapsed_secs) == (800 * PEAK, 800)
    assert claim.is_approximate
    assert (host.pfc.n, ran.samples) == (MANY, [])


def test_a_cut_run_time_claims_no_more_than_the_default() -> None:
    # Such claims give no samples: nothing would ever scale them down.
    host = record(MANY, 1.0)
    [claim] = decide(app(), result(host, version(MANY, 1.0, 1.0), 60_000.0, sent_at=NOW - 50_000)).claims
    assert (claim.claim_rule, claim.claimed_pfc, claim.elapsed_secs) == (ClaimRule.OVERLONG, EST, 50_000)


def test_a_result_received_before_it_was_sent_claims_nothing_for_time() -> None:
    [claim] = decide(app(), result(record(), version(), 10.0, sent_at=NOW + 5)).claims
    assert (claim.elapsed_secs, claim.claimed_pfc) == (0.0, 0.0)


def test_times_that_are_not_known_cut_nothing() -> None:
    host = record()
    [claim] = decide(app(), result(host, version(), 1000.0, sent_at=nan)).claims
    assert claim.claimed_pfc == EST
    assert (host.pfc.n, host.turnaround.n) == (1, 0)


@pytest.mark.parametrize("est", [nan, inf, -1.0, 0.0])
def test_a_workunit_without_an_estimate_is_decided_all_the_same(est: float) -> None:
    for facts in (app(), app(Rules.deployed())):
        host = record()
        assert decide(facts, result(host, version(), 0.0), job=workunit(fpops_est=est)).grant.credit == 0
        decide(facts, result(host, version(), 1000.0, peak_flops=2e9), job=workunit(fpops_est=est))
        assert (host.pfc.n, host.et.n) == (0, 0)


def test_samples_are_relative_to_the_estimate() -> None:
    host, ran = record(), version()
    decide(app(), result(host, ran, 3000.0))
    # 3000 s × 1e9 / 1e12; 3000 / 1e12; a day
    assert ran.samples == [3.0]
    assert (host.pfc.avg, host.et.avg, host.turnaround.avg) == (3.0, 3e-9, DAY)


def test_anonymous_platform_feeds_the_hosts_averages_only() -> None:
    host = record()
    decide(app(), anonymous(host, 3000.0))
    assert host.pfc == Average(1, 3.0)


def test_no_claim_scales_itself() -> None:
    host = record(10, 1.0)
    [claim] = decide(app(), result(host, version(100, 1.0, 1.0), 10_000.0)).claims
    assert claim.host_scale == 1.0
    assert host.pfc.avg != 1.0


def test_two_results_of_one_host_both_use_the_averages_from_before() -> None:
    host, ran = record(10, 1.0), version(100, 1.0, 1.0)
    decision = decide(app(), result(host, ran, 1000.0), result(host, ran, 5000.0))
    assert [claim.host_scale for claim in decision.claims] == [1.0, 1.0]
    assert (host.pfc.n, host.consecutive_valid, ran.samples) == (12, 2, [1.0, 5.0])


def test_a_versions_average_does_not_move_within_a_pass() -> None:
    ran = version(100, 1.0, 1.0)
    for _ in range(5):
        decide(app(), result(record(), ran, 9000.0))
    assert (ran.pfc, ran.samples) == (Average(100, 1.0), [9.0] * 5)


def test_what_is_unknown_is_told_from_what_is_zero() -> None:
    [claim] = decide(app(), result(record(), version())).claims
    assert (claim.version_scale, claim.host_scale, claim.min_avg_pfc, claim.host_pfc_avg) == (None, None, None, None)


def test_a_claim_changes_nothing_but_the_records() -> None:
    host: HostVersionFacts = record()
    ran: VersionFacts = version()
    given: ResultFacts = result(host, ran)
    kept = replace(given)
    job = workunit()
    decide(app(), given, job=job)
    assert given == kept
    assert job == workunit()
    assert job.fpops_bound == BOUND
