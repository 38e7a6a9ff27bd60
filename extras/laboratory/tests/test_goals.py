"""The credit document's goals on simulated populations, and evidence that the laboratory would notice if they were
missed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from credit.engine.rules import Rules
from extras.laboratory.trials.figures import (
    Gain,
    cheat_gain,
    device_neutrality,
    drift,
    gpu_neutrality,
    host_spread,
    project_neutrality,
    wingman_variance,
)
from extras.laboratory.trials.goals import (
    ADAPTIVE,
    BELOW_USUAL_BOUND,
    CHEAT_JOBS,
    EVASION_BOUND,
    EVASIONS,
    HALF_HIDDEN_WORK,
    LEAD_LOSS_BOUND,
    PAIRS,
    honest_loss,
    lead_loss,
    picking_gain,
    picking_gains,
    settled,
)
from extras.laboratory.trials.population import KINDS, Cheat
from extras.laboratory.trials.trial import Outcome, Setup, Trial

ABOUT_NOTHING = 1.25 * EVASION_BOUND
"""Tolerance for one population: by chance its jobs are slightly shorter or longer than others'."""


@pytest.fixture(scope="module")
def singles() -> list[Outcome]:
    """After 2,000 jobs of each version, single results."""
    return settled(Setup(seed=7, hosts=120))[0]


def test_equal_jobs_bring_equal_credit_on_all_devices(singles: list[Outcome]) -> None:
    assert {outcome.kind_index for outcome in singles} == {0, 1, 2, 3, 4, 5}
    assert device_neutrality(singles) < 0.03


def test_equal_jobs_bring_equal_credit_on_all_hosts(singles: list[Outcome]) -> None:
    assert host_spread(singles) < 0.05


def test_credit_does_not_drift(singles: list[Outcome]) -> None:
    assert drift(singles) < 0.02


def test_replicas_of_a_job_claim_nearly_the_same() -> None:
    trial = Trial(Setup(seed=7, hosts=60, nreplicas=2))
    trial.run(6000)
    # Run times vary by ±5 %: two of them differ by a thirtieth on average.
    assert 0.02 < wingman_variance(trial.run(3000)) < 0.05


def gain_of(cheat: Cheat, *, nreplicas: int = 1, rules: Rules | None = None) -> Gain:
    rules = rules or Rules.published()
    trial = Trial(Setup(seed=7, hosts=20, first_cheats=[cheat], nreplicas=nreplicas, rules=rules))
    while sum(outcome.cheat is cheat for outcome in trial.outcomes) < CHEAT_JOBS + 300:
        trial.run(2000)
    # Honest hosts' first jobs, before anything is known about anybody, are no measure.
    mature = [outcome for outcome in trial.outcomes if outcome.cheat is cheat or outcome.number > 2000]
    return cheat_gain(mature, cheat, CHEAT_JOBS)


@pytest.mark.parametrize("nreplicas", [1, 2])
def test_a_host_that_exaggerates_tenfold_ends_near_honest_ones(nreplicas: int) -> None:
    gain = gain_of(Cheat.EXAGGERATE, nreplicas=nreplicas)
    assert abs(gain.late - 1) < 0.2
    # Its gain by then: its first jobs count tenfold until its average is known, 10 of 500 on each version.
    assert gain.early < 1.5


def test_an_impossible_run_time_brings_at_most_the_default() -> None:
    gain = gain_of(Cheat.ONE_TIME)
    assert 0 < gain.greatest <= 1 + 1e-9


@pytest.mark.long
def test_next_to_nothing_on_nine_of_ten_jobs_is_the_gap_that_is_left() -> None:
    # Averages are not weighted by job size: the tenth job is worth up to ten. To the letter the cap on samples, ten
    # times the average so far, keeps that average low. The remaining gain is reported, not hidden.
    assert 1 < gain_of(Cheat.SLACK).late < 1.1
    assert gain_of(Cheat.SLACK, rules=Rules.letter()).late > 1.5


# --- picking jobs whose estimate hides their size ------------------------------------------------------------
@pytest.mark.long
def test_picking_short_jobs_pays_without_the_check() -> None:
    # Half of the jobs take 0.2, half 2 times the estimate: a factor of 1.1 / 0.2 = 5.5.
    assert picking_gain(Rules.published(), 7, Cheat.CHERRY_PICK, check=False) == pytest.approx(4.5, abs=0.2)


def test_with_the_check_no_way_to_get_rid_of_long_jobs_pays() -> None:
    gains = picking_gains(Rules.published(), 7, EVASIONS)
    assert {cheat: gain for cheat, gain in gains.items() if gain > EVASION_BOUND} == {}


@pytest.mark.long
def test_to_the_letter_all_ways_but_errors_pay() -> None:
    gains = picking_gains(Rules.letter(), 7, EVASIONS)
    assert {cheat for cheat, gain in gains.items() if gain > 3} == {*EVASIONS} - {Cheat.CHERRY_PICK}


@pytest.mark.parametrize(("way", "failing_part"), [pytest.param(ADAPTIVE, 0.0, marks=pytest.mark.long), (PAIRS, 0.03)])
def test_replicas_take_the_gain_from_those_who_exaggerate_their_short_jobs(way: str, failing_part: float) -> None:
    """Other computers fail some jobs, too, and are on probation now and then."""
    gain = picking_gain(Rules.published(), 7, Cheat.PICK_AND_EXAGGERATE, way, failing_part=failing_part)
    assert gain <= EVASION_BOUND


def test_single_results_do_not() -> None:
    # Its claim looks like an honest one. The report says so.
    assert picking_gain(Rules.published(), 7, Cheat.PICK_AND_EXAGGERATE) > 4


@pytest.mark.long
def test_jobs_that_were_picked_before_raise_no_factor_later() -> None:
    letter = replace(Rules.published(), only_clean_samples_raise=False)
    assert picking_gain(letter, 7, Cheat.PICK_IN_TURNS) > 0.3
    gains = picking_gains(Rules.published(), 7, [Cheat.PICK_IN_TURNS, Cheat.PICK_FEW])
    assert {cheat: gain for cheat, gain in gains.items() if gain > ABOUT_NOTHING} == {}


@pytest.mark.long
def test_short_jobs_raise_no_factor_before_the_long_ones_of_the_same_time_have_failed() -> None:
    gains = picking_gains(Rules.published(), 7, [Cheat.HOLD_BACK, Cheat.FAIL_FIRST, Cheat.HOLD_IN_TURNS])
    assert {cheat: gain for cheat, gain in gains.items() if gain > ABOUT_NOTHING} == {}


@pytest.mark.long
def test_new_honest_computers_lose_less_than_a_hundredth_by_the_bound_on_leads_and_get_what_usual_jobs_bring() -> None:
    loss, below = lead_loss(Rules.published(), 7, HALF_HIDDEN_WORK)
    assert 0 <= loss < LEAD_LOSS_BOUND
    assert abs(below) < BELOW_USUAL_BOUND
    # To the letter nothing is bounded.
    assert lead_loss(Rules.letter(), 7, HALF_HIDDEN_WORK)[0] == 0


@pytest.mark.long
def test_honest_computers_lose_hardly_anything_by_the_check_though_they_fail_some_jobs() -> None:
    # To the letter efficient ones lose their factor above 1 while they are on probation.
    assert honest_loss(Rules.published(), 7, 0.03) < EVASION_BOUND / 2
    assert honest_loss(Rules.letter(), 7, 0.03) > EVASION_BOUND


def test_without_normalisation_the_laboratory_sees_that_devices_differ() -> None:
    # No version ever has enough samples: GPU versions, at a tenth of their peak, claim several times as much.
    unscaled = replace(Rules.published(), min_version_samples=10**9)
    trial = Trial(Setup(seed=7, hosts=60, rules=unscaled))
    trial.run(4000)
    assert device_neutrality(trial.run(4000)) > 1


def test_without_host_normalisation_exaggeration_pays_tenfold() -> None:
    rules = replace(Rules.published(), min_host_samples=10**9, caps_first_claims=False)
    assert gain_of(Cheat.EXAGGERATE, rules=rules).late > 5


def test_one_seed_is_one_outcome() -> None:
    first, second = (Trial(Setup(seed=3, hosts=10)).run(200) for _ in range(2))
    assert first == second


def test_figures_of_made_up_outcomes() -> None:
    def outcome(number: int, host: int, kind_index: int, granted: float) -> Outcome:
        return Outcome(number, host, 1, kind_index, granted, granted, False, Cheat.NONE, 1.0, False)

    rows = [outcome(n, n % 2, n % 2, 1.0 if n % 2 else 1.5) for n in range(200)]
    # Means 1 and 1.5, overall 1.25: (1.5 − 1) / 1.25 = 0.4; each host is 0.25 off: 0.25 / 1.25 = 0.2
    assert device_neutrality(rows) == pytest.approx(0.4)
    assert host_spread(rows) == pytest.approx(0.2)
    # From 1 to 2 in 1,000 jobs, 1.5 on average: 1 / 1.5
    line = [outcome(n, 0, 0, 1 + n / 1000) for n in range(1001)]
    assert drift(line) == pytest.approx(1 / 1.5)
    # |1 − 3| / 2 = 1
    assert wingman_variance([outcome(1, 0, 0, 1.0), outcome(1, 1, 0, 3.0)]) == pytest.approx(1)


def test_a_version_that_is_granted_the_mean_for_long_and_short_jobs_is_as_neutral_as_one_that_is_not() -> None:
    """The document's goal is the same credit on average, for jobs whose estimate hides their size."""

    def outcome(number: int, kind_index: int, granted: float, work: float) -> Outcome:
        return Outcome(number, kind_index, 1, kind_index, granted, granted, False, Cheat.NONE, 1.0, False, work)

    # One version gets 1 for each job; the other one gets 0.2 for short and 1.8 for long jobs. All get 1 on average.
    works = [0.2, 1.8, 1.8, 0.2] * 100
    rows = [outcome(n, 0, 1.0, work) for n, work in enumerate(works)]
    rows += [outcome(n, 1, work, work) for n, work in enumerate(works)]
    assert device_neutrality(rows) == pytest.approx(0)
    assert host_spread(rows) == pytest.approx(0)
    assert drift(rows) == pytest.approx(0, abs=1e-9)


def test_project_neutrality_of_made_up_outcomes() -> None:
    def outcome(kind_index: int, granted: float, peak_work: float) -> Outcome:
        return Outcome(1, 0, 1, kind_index, granted, granted, False, Cheat.NONE, 1.0, False, 1.0, peak_work)

    # Credit for the peak FLOPs of a CPU: (1 + 1) / (2 + 2) = 0.5 here, 1 / 4 = 0.25 there; their mean is 0.375.
    here, there = [outcome(0, 1.0, 2.0), outcome(1, 1.0, 2.0)], [outcome(0, 1.0, 4.0)]
    assert project_neutrality(KINDS, here, KINDS[:2], there) == pytest.approx(0.25 / 0.375)
    assert gpu_neutrality(KINDS, here) is None
    assert project_neutrality(KINDS, here, KINDS, []) is None
    # A GPU takes ten times a CPU's peak FLOPs for a job, so its time is worth a tenth; it gets a fifth: twice as much.
    assert gpu_neutrality(KINDS, [outcome(0, 1.0, 2.0), outcome(2, 2.0, 20.0)]) == pytest.approx(1)


def test_a_project_that_pays_for_peak_flops_is_not_neutral() -> None:
    unscaled = replace(Rules.published(), min_version_samples=10**9)
    outcomes = Trial(Setup(seed=7, hosts=60, rules=unscaled)).run(4000)
    # GPU versions achieve about a tenth of their peak and CPU versions half of it, but GPU time is paid as CPU time.
    assert (gpu_neutrality(KINDS, outcomes) or 0) > 1


@pytest.mark.parametrize("cheat", [Cheat.LATE, Cheat.LATE_TIMES, Cheat.RAMP, Cheat.LEAVE])
def test_claims_that_change_their_level_gain_nothing(cheat: Cheat) -> None:
    # One of twenty shifts the versions' averages slightly itself.
    assert gain_of(cheat).early < 1.12
    assert gain_of(cheat, rules=Rules.letter()).early > 1.3
