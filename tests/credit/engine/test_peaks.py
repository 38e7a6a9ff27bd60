"""A computer whose reported peak speed changes: its averages follow, and run times alone decide its credit."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest

from credit.engine.averages import Average
from credit.engine.facts import AppFacts
from credit.engine.rules import Rules, credit_of
from tests.support.credit_engine_facts import NOW, about, app, decide, record, result, version, workunit

DATA = Path(__file__).resolve().parents[2] / "data" / "credit"
PEAK = 1e9


def replay(name: str, facts: AppFacts, average: float, scale: float, case: str = "") -> Iterator[float]:
    """The credit of each job of a file, over that of an average job of its size; the version's average stays."""
    host = record()
    with (DATA / name).open(newline="") as rows:
        for row in csv.DictReader(rows):
            if case and row["case"] != case:
                continue
            est = float(row["fpops_est"])
            job = workunit(fpops_est=est, fpops_bound=100 * est)
            given = result(
                host, version(100_000, average, scale), float(row["elapsed_secs"]),
                peak_flops=float(row["peak_flops"]), ninstances=1.0,
            )  # fmt: skip
            yield decide(facts, given, job=job).grant.credit / credit_of((facts.min_avg_pfc or 1.0) * est)


def test_who_claims_ten_times_the_benchmark_later_gains_nothing() -> None:
    credits = list(replay("late-exaggeration.csv", app(min_avg_pfc=1.0), 1.0, 1.0))
    assert 0.8 < fmean(credits[60:110]) < 1.1
    # To the letter: 10 / (10 - 9 * 0.99^n), n from 0 to 49
    letter = list(replay("late-exaggeration.csv", app(Rules.letter(), min_avg_pfc=1.0), 1.0, 1.0))
    assert fmean(letter[60:110]) > 3.9


def test_who_claims_more_with_each_job_gains_nothing() -> None:
    credits = list(replay("ramp.csv", app(min_avg_pfc=1.0), 1.0, 1.0))
    assert 0.9 < fmean(credits[20:110]) < 1.1


@pytest.mark.parametrize("case", ["client update doubles the peak", "client update halves the peak"])
def test_an_update_that_doubles_or_halves_a_gpus_peak_changes_no_credit(case: str) -> None:
    # A GPU version with the average 20 in an app with the least average 2
    credits = list(replay("gpu-peak-changes.csv", app(min_avg_pfc=2.0), 20.0, 0.1, case))
    assert 0.95 < fmean(credits[100:200]) / fmean(credits[10:100]) < 1.05


def test_all_averages_of_pfc_follow_the_peak() -> None:
    host = record(100, 1.0, recent_pfc=Average(3, 2.0), waiting_pfc=Average(4, 0.5), instance_flops=PEAK)
    claim = decide(
        app(min_avg_pfc=1.0), result(host, version(999, 1.0, 1.0), peak_flops=3 * PEAK, ninstances=1.0)
    ).claims[0]
    # Read at three times the peak: a job of 3 for a host of 3
    assert (claim.host_pfc_avg, claim.claimed_pfc) == (about(3.0), about(1e12))
    assert host.pfc.avg == about(3.0)
    # The recent ones begin to wait, as none did yet; the sample is the first recent one.
    assert (host.waiting_pfc.avg, host.recent_pfc.avg) == (about(6.0), about(3.0))
    assert host.instance_flops == 3 * PEAK


def test_more_threads_are_no_faster_processor() -> None:
    host = record(100, 1.0, instance_flops=PEAK)
    decide(app(), result(host, version(), 250.0, peak_flops=4 * PEAK, ninstances=4.0))
    assert (host.pfc.avg, host.instance_flops) == (about(1.0), PEAK)


@pytest.mark.parametrize("fields", [{}, {"ninstances": 0.0}, {"ninstances": 1.0, "peak_flops": 0.0}])
def test_what_is_not_known_changes_no_average(fields: dict[str, float]) -> None:
    host = record(100, 1.0, instance_flops=PEAK / 8)
    decide(app(), result(host, version(), **fields))
    assert host.pfc.avg == about(1.0)
    assert host.instance_flops == PEAK / 8


@pytest.mark.parametrize("rules", [Rules.letter(), Rules.deployed()])
def test_other_rule_sets_know_no_peak(rules: Rules) -> None:
    host = record(100, 1.0)
    decide(app(rules), result(host, version(999, 1.0, 1.0), peak_flops=3 * PEAK, ninstances=1.0), now=NOW)
    assert host.instance_flops is None


@pytest.mark.parametrize("is_anonymous", [False, True])
@pytest.mark.parametrize("which", ["processors", "run time"])
def test_more_processors_in_the_same_time_gain_as_much_as_a_longer_run_time_and_no_more(
    which: str, is_anonymous: bool
) -> None:
    """The limits that the explanation states: 10 / (10 - 9 * 0.99^n), n from 0 to 49, is 4.1 on average."""
    host = record(100, 1.0, instance_flops=PEAK)
    facts = app(min_avg_pfc=1.0)
    job = workunit(fpops_est=1e12, fpops_bound=1e14)
    secs, ncpus = (1e3, 10.0) if which == "processors" else (1e4, 1.0)
    credits = []
    for _ in range(50):
        used = None if is_anonymous else version(100_000, 1.0, 1.0)
        given = result(host, used, secs, peak_flops=ncpus * PEAK, ninstances=ncpus, is_anonymous=is_anonymous)
        credits.append(decide(facts, given, job=job).grant.credit / credit_of(1e12))
    assert 4.0 < fmean(credits) < 4.2


@pytest.mark.parametrize("ninstances", [0.0, 5e-324, 1e-280, 65_535.0, float("nan"), float("inf")])
@pytest.mark.parametrize("check", [False, True])
def test_no_number_of_processors_makes_an_average_overflow_or_stops_a_pass(ninstances: float, check: bool) -> None:
    host = record(100, 1e149, clean_pfc=Average(100, 1e-100), instance_flops=PEAK)
    facts = app(min_avg_pfc=1.0, host_scale_check=check)
    for number in (ninstances, 1.0, ninstances, 1.0):
        decide(facts, result(host, version(999, 1.0, 1.0), peak_flops=PEAK, ninstances=number))
        assert 0 <= (host.pfc.avg or 0.0) < 1e300
        assert 0 < (host.clean_pfc.avg or 0.0) < 1e300
        assert 0 < (host.instance_flops or 0.0) < 1e300


def test_rare_claims_of_many_processors_count_no_more_than_their_samples() -> None:
    host = record(100, 1.0, instance_flops=PEAK)
    credits = []
    for number in range(2_000):
        ncpus = 64.0 if number % 50 == 49 else 1.0
        given = result(host, version(100_000, 1.0, 1.0), 1e3, peak_flops=ncpus * PEAK, ninstances=ncpus)
        job = workunit(fpops_est=1e12, fpops_bound=1e15)
        credits.append(decide(app(min_avg_pfc=1.0), given, job=job).grant.credit / credit_of(1e12))
    assert fmean(credits) < 1.02
