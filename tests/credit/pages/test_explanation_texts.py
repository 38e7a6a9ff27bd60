"""Explanations: the claim can be recalculated from them, and every rule has its words."""

from __future__ import annotations

from dataclasses import fields
from math import inf, nan

import pytest
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.averages import Average
from credit.engine.decisions import Decision, decide_set
from credit.engine.explanation import CUT, DEFAULT_RULES, ClaimRule, Explanation, Grant, GrantRule, grant_rule_of
from credit.engine.facts import AppFacts, CreditSystem, HostVersionFacts, ReplicaRule, ResultFacts, VersionFacts
from credit.engine.rules import MAX_CREDIT, Rules
from credit.pages.explanation_texts import (
    claim_steps,
    grant_steps,
    used_elapsed_secs,
)
from tests.support.credit_engine_facts import (
    EST,
    NOW,
    WEEK,
    anonymous,
    app,
    decide,
    recomputed_credit,
    recomputed_pfc,
    record,
    result,
    version,
    workunit,
)

wild = st.one_of(
    st.floats(),
    st.sampled_from([nan, inf, -inf, 0.0, -0.0, 1e-308, 1e304, 1e308, -1.0]),
    st.floats(1.0, 1e5),
)
amounts = st.one_of(st.none(), st.floats(0, 1e29), st.floats(0.01, 100))
counts = st.sampled_from([0, 1, 9, 10, 11, 19, 20, 99, 100, 101, 5000])


@st.composite
def averages(draw: st.DrawFn) -> Average:
    n = draw(counts)
    return Average(n, draw(st.floats(0, 1e29) | st.floats(0.01, 100)) if n else None)


@st.composite
def apps(draw: st.DrawFn) -> AppFacts:
    return app(
        draw(st.sampled_from([Rules.published(), Rules.letter(), Rules.deployed()])).with_limits(
            max_granted_credit=draw(st.one_of(st.none(), st.floats(1e-6, 1e6)))
        ),
        min_avg_pfc=draw(amounts),
        host_scale_check=draw(st.booleans()),
        credit_system=draw(st.sampled_from(CreditSystem)),
        replica_rule=draw(st.sampled_from(ReplicaRule)),
        fixed_credit=draw(st.one_of(st.none(), st.floats(0, 1e6))),
        fixed_credit_per_flop=draw(st.one_of(st.none(), st.floats(0, 1))),
        actual_flops_scale=draw(st.floats(1e-6, 1e6)),
    )


records = st.builds(
    HostVersionFacts,
    averages(),
    scale_probation=st.booleans(),
    host_scale_time=st.one_of(st.none(), st.just(NOW - WEEK), st.just(NOW + WEEK)),
    consecutive_valid=st.integers(0, 20),
    peak_flops=st.one_of(st.none(), st.floats(1e-9, 1e27)),
)
versions = st.builds(VersionFacts, st.just(1), averages(), st.one_of(st.none(), st.floats(1e-6, 1e29)))
results = st.builds(
    ResultFacts,
    st.one_of(st.none(), records),
    st.one_of(st.none(), versions),
    wild,
    wild,
    st.floats(NOW - WEEK, NOW) | wild,
    st.just(NOW) | wild,
    is_anonymous=st.booleans(),
    cpu_secs=wild,
    is_runtime_outlier=st.booleans(),
    p_fpops=wild,
    fpops_cumulative=wild,
    fpops_per_cpu_sec=wild,
)


def is_sound(number: float | None) -> bool:
    return number is None or 0 <= number < inf


def tidy(given: ResultFacts) -> ResultFacts:
    """A version with a row is not anonymous platform."""
    if given.version is not None:
        given.is_anonymous = False
    return given


@given(apps(), st.lists(results.map(tidy), min_size=1, max_size=4), st.integers(1, 3))
def test_whatever_clients_report_a_workunit_is_decided_and_statistics_stay_sound(
    facts: AppFacts, valid: list[ResultFacts], min_quorum: int
) -> None:
    decision = decide_set(facts, workunit(min_quorum=min_quorum), valid, [], NOW)
    assert 0 <= decision.grant.credit <= MAX_CREDIT
    assert len(decision.claims) == len(valid)
    for counted in valid:
        if (host := counted.host_version) is not None:
            for number in (host.pfc.avg, host.et.avg, host.et.var, host.turnaround.avg, host.turnaround.var):
                assert is_sound(number)
        if counted.version is not None:
            assert all(is_sound(sample) for sample in counted.version.samples)


@given(apps(), st.lists(results.map(tidy), min_size=1, max_size=3))
def test_a_claim_is_worked_out_again_from_its_explanation(facts: AppFacts, valid: list[ResultFacts]) -> None:
    job = workunit()
    for claim in decide_set(facts, job, valid, [], NOW).claims:
        assert recomputed_pfc(claim, job) == claim.claimed_pfc
        if claim.claim_rule is ClaimRule.FIXED_PER_JOB:
            assert recomputed_credit(claim, job) == pytest.approx(claim.claimed_credit)
        else:
            assert recomputed_credit(claim, job) == claim.claimed_credit


@given(apps(), results.map(tidy))
def test_every_explanation_is_told_and_ends_with_the_claim(facts: AppFacts, given: ResultFacts) -> None:
    decision = decide_set(facts, workunit(), [given], [], NOW)
    [claim] = decision.claims
    steps = claim_steps(claim, workunit())
    assert steps[-1].number == claim.claimed_credit
    assert all(step.label and step.sentence.endswith(".") for step in steps)
    assert grant_steps(decision.grant)[-1].number == decision.grant.credit


@given(st.lists(st.floats(1.0, 9e4), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_grant_does_not_depend_on_the_order_of_results(run_times: list[float], rng: object) -> None:
    def granted(times: list[float]) -> float:
        return decide(app(), *(result(record(50, 1.0), version(500, 2.0, 0.5), t) for t in times)).grant.credit

    assert granted(run_times) == pytest.approx(granted(sorted(run_times)))


@given(st.floats(1.0, 800.0), st.floats(0.01, 100), st.floats(0.01, 100))
def test_an_honest_hosts_credit_does_not_depend_on_its_speed(elapsed: float, peak: float, avg: float) -> None:
    # Twice the speed, half the time: the same claim.
    claims = []
    for factor in (1.0, peak):
        given = result(record(50, avg), version(500, 2.0, 0.5), elapsed / factor, peak_flops=1e9 * factor)
        claims.append(decide(app(), given).claims[0].claimed_pfc)
    assert claims[0] == pytest.approx(claims[1])


def parts() -> Decision:
    given = result(record(50, 1.0), version(500, 2.0, 0.5), 3000.0, partial_elapsed_secs=1000.0, partial_credit=2.0)
    return decide(app(), given)


def test_a_claim_after_trickles_is_worked_out_again_too() -> None:
    [claim] = parts().claims
    assert recomputed_credit(claim, workunit(), partial_credit=2.0) == claim.claimed_credit
    assert "Credited while running" in [step.label for step in claim_steps(claim, workunit(), 2.0)]


def test_the_steps_of_a_normal_claim() -> None:
    decision = decide(app(min_avg_pfc=2.0), result(record(50, 1.0), version(500, 2.0, 0.5)))
    steps = claim_steps(decision.claims[0], workunit())
    assert [(step.label, step.number) for step in steps] == [
        ("Run time (s)", 1000.0),
        ("FLOPs before scaling", EST),
        ("× factor of the version", 0.5),
        ("× factor of the computer", 2.0),
        ("Claim (FLOPs)", EST),
        ("Claim (credit)", pytest.approx(2.3148148)),
    ]
    assert steps[3].sentence == (
        "The version’s average, 2 (samples: 500), divided by this computer’s average, 1 (samples: 50), within limits."
    )


def test_the_steps_of_a_default_claim() -> None:
    steps = claim_steps(decide(app(min_avg_pfc=2.0), anonymous(record())).claims[0], workunit())
    assert [(step.label, step.number) for step in steps[2:]] == [
        ("Estimate (FLOPs)", EST),
        ("Claim (FLOPs)", 2 * EST),
        ("Claim (credit)", pytest.approx(4.6296296)),
    ]
    assert "2 × the task’s estimate" in steps[3].sentence


def test_numbers_in_sentences_are_written_as_in_the_readers_language() -> None:
    decision = decide(app(min_avg_pfc=2.0), result(record(50, 1.25), version(500, 2.5, 0.5)))
    with override("de"):
        sentence = claim_steps(decision.claims[0], workunit())[3].sentence
    assert "Version, 2,5 (Stichproben: 500)" in sentence and "Computers, 1,25 (Stichproben: 50)" in sentence


def test_a_cut_run_time_is_told() -> None:
    given = result(record(50, 1.0), version(500, 2.0, 0.5), 2000.0, sent_at=NOW - 700)
    [claim] = decide(app(), given).claims
    assert (
        used_elapsed_secs(claim.claim_rule, claim.raw_pfc, given.peak_flops, given.elapsed_secs)
        == claim.elapsed_secs
        == 700
    )
    step = claim_steps(claim, workunit(), reported_secs=given.elapsed_secs)[0]
    assert (step.number, step.sentence) == (
        700,
        "The time between sending and report. The computer reported more than that: 2000 s.",
    )


def test_a_run_time_that_was_not_cut_is_the_one_reported() -> None:
    given = result(record(50, 1.0), version(500, 2.0, 0.5), 1000 / 3, peak_flops=7e9, partial_elapsed_secs=100.0)
    [claim] = decide(app(), given).claims
    rule = claim.claim_rule
    assert used_elapsed_secs(rule, claim.raw_pfc, 7e9, 1000 / 3, 100.0) == 1000 / 3
    assert used_elapsed_secs(rule, None, 7e9, 5.0) == used_elapsed_secs(rule, 1.0, None, 5.0) == 5.0
    assert used_elapsed_secs(rule, 1e9, 1e9, None) is None
    # FLOPs that are not of the run time say nothing of it.
    for other in (ClaimRule.ZERO_ELAPSED, ClaimRule.ABOVE_BOUND, ClaimRule.PEAK_FLOPS, ClaimRule.FIXED_PER_JOB):
        assert used_elapsed_secs(other, 0.0, 1e9, 5.0) == 5.0


def test_probation_is_told() -> None:
    host = record(50, 1.0, scale_probation=True)
    claim = decide(app(host_scale_check=True), result(host, version(500, 2.0, 0.5))).claims[0]
    assert "On probation" in [step.label for step in claim_steps(claim, workunit())]


@pytest.mark.parametrize("rule", ClaimRule)
def test_every_claim_rule_has_words(rule: ClaimRule) -> None:
    pfc = None if rule is ClaimRule.LEFT_OUT else EST
    claim = Explanation(rule, EST, pfc, 1.0, True, 0.5, 0.5, False, 500, 2.0, 50, 1.0, 1.5, 1000.0)
    assert claim_steps(claim, workunit())
    assert (rule in DEFAULT_RULES) is (rule < ClaimRule.ANONYMOUS_NORMALISED and rule is not ClaimRule.LEFT_OUT)


@pytest.mark.parametrize("rule", GrantRule)
@pytest.mark.parametrize("is_cut", [False, True])
def test_every_grant_rule_has_words_and_is_stored_with_its_cut(rule: GrantRule, is_cut: bool) -> None:
    grant = Grant(5.0, rule, is_cut)
    assert grant_rule_of(grant.code) == (rule, is_cut)
    labels = [step.label for step in grant_steps(grant, due=3.0)]
    assert ("Maximum (credit)" in labels) is is_cut
    assert labels[-1] == "Granted now (credit)"


def test_a_stored_code_that_is_no_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="63"):
        grant_rule_of(63)
    assert max(GrantRule) < CUT


def test_stored_rule_numbers_never_change() -> None:
    assert {rule.name: rule.value for rule in ClaimRule} == {
        "UNKNOWN_PEAK": 0,
        "NO_VERSION": 1,
        "ABOVE_BOUND": 2,
        "IMPOSSIBLE": 3,
        "ZERO_ELAPSED": 4,
        "ANONYMOUS_DEFAULT": 5,
        "LEFT_OUT": 6,
        "OVERLONG": 7,
        "UNSCALED_VERSION": 8,
        "FIRST_JOBS": 9,
        "ANONYMOUS_NORMALISED": 10,
        "VERSION_AND_HOST": 11,
        "VERSION_ONLY": 12,
        "HOST_ONLY": 13,
        "UNSCALED": 14,
        "PEAK_FLOPS": 20,
        "FLOPS_COUNTED": 21,
        "FLOPS_PER_CPU_SEC": 22,
        "BENCHMARK": 23,
        "FIXED_PER_JOB": 30,
        "FIXED_PER_FLOP": 31,
        "GIVEN_WITH_JOB": 32,
        "RUN_TIME": 33,
        "ASSIGNED": 34,
    }
    assert [rule.value for rule in GrantRule] == [*range(1, 9), 10, 11, 12, 13, 15, 14, 9]


def test_the_explanations_fields_are_columns_of_the_result() -> None:
    from credit.models import Result

    columns = {field.name for field in Result._meta.get_fields()}
    assert {field.name for field in fields(Explanation)} - {"elapsed_secs", "fails_often", "room_jobs"} <= columns
    assert "grant_rule" in columns


def test_a_factor_that_was_cut_is_told() -> None:
    # 1.25 × 3 / 2 = 1.875, not 3 / 1
    host = record(50, 1.0, clean_pfc=Average(20, 2.0))
    [claim] = decide(app(host_scale_check=True), result(host, version(500, 3.0, 0.5))).claims
    [step] = [step for step in claim_steps(claim, workunit()) if step.label == "× factor of the computer"]
    assert step.number == 1.875
    assert "because its earlier tasks do not justify a higher one" in step.sentence


def test_what_probation_means_is_told() -> None:
    host = record(50, 1.0, failing_share=0.5)
    [claim] = decide(app(host_scale_check=True), result(host, version(500, 3.0, 0.5))).claims
    [step] = [step for step in claim_steps(claim, workunit()) if step.label == "On probation"]
    assert "Until this changes, its factor is at most 1, and its claims do not affect" in step.sentence
    [step] = [step for step in claim_steps(claim, workunit()) if step.label == "× factor of the computer"]
    assert step.number == 1
    assert "lowered" not in step.sentence and "limited" not in step.sentence


@pytest.mark.parametrize(("average", "is_limited"), [(30.0, True), (10.0, False)])
def test_a_factor_above_the_apps_limit_names_the_limit(average: float, is_limited: bool) -> None:
    # 30 / 1 or 10 / 1, and 10 at most
    [claim] = decide(app(), result(record(50, 1.0), version(500, average, 0.5))).claims
    [step] = [step for step in claim_steps(claim, workunit()) if step.label == "× factor of the computer"]
    assert step.number == 10
    assert ("The factor was then limited to 10, the maximum for this app." in step.sentence) is is_limited


@pytest.mark.parametrize("check", [False, True])
def test_probation_is_spoken_of_only_where_there_is_any(check: bool) -> None:
    facts = app(host_scale_check=check)
    [claim] = decide(facts, result(record(50, 1.0), version(500, 3.0, 0.5), nan)).claims
    told = " ".join(step.sentence for step in claim_steps(claim, workunit(), app=facts))
    assert ("on probation again" in told) is check


@pytest.mark.parametrize(("average", "words"), [(None, "the task’s estimate"), (2.0, "an average task of this size")])
def test_an_average_is_spoken_of_only_where_there_is_one(average: float | None, words: str) -> None:
    decision = decide(app(min_avg_pfc=average), *(result(record(), version(), 0.0) for _ in range(2)))
    [step] = grant_steps(decision.grant, min_avg_pfc=decision.claims[0].min_avg_pfc)
    assert words in step.sentence


def test_a_gpu_of_unknown_speed_says_what_the_client_reports_wrongly() -> None:
    [claim] = decide(app(), result(record(), version(), peak_flops=nan)).claims
    assert "reports no speed for its GPU" in claim_steps(claim, workunit())[1].sentence
