"""A computer whose reported peak speed changes: its averages no longer hold."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.explanation import ClaimRule
from credit.engine.facts import AppFacts, HostVersionFacts
from credit.engine.rules import Rules, credit_of
from tests.support.credit_engine_facts import NOW, about, app, decide, record, result, version, workunit

DATA = Path(__file__).resolve().parents[2] / "data" / "credit"
PEAK = 1e9
USUAL = credit_of(1e12)


def replay(name: str, facts: AppFacts, average: float, scale: float, case: str = "") -> Iterator[float]:
    """The credit of each job of a file, over that of an average job of its size; the version's average stays."""
    host = record()
    with (DATA / name).open(newline="") as rows:
        for row in csv.DictReader(rows):
            if case and row["case"] != case:
                continue
            est = float(row["fpops_est"])
            job = workunit(fpops_est=est, fpops_bound=100 * est)
            secs, peak = float(row["elapsed_secs"]), float(row["peak_flops"])
            given = result(host, version(100_000, average, scale), secs, peak_flops=peak)
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


def settled(**fields: Any) -> HostVersionFacts:
    """A record of a hundred samples of an average of 1, at ``PEAK``."""
    return record(100, 1.0, et=AverageWithVariance(100, 1e-9), peak_flops=PEAK, **fields)


def fifty_jobs(host: HostVersionFacts, secs: float, times: float, *, is_anonymous: bool = False) -> float:
    """The mean credit of the next jobs, as a part of a usual job's, when the peak is ``times`` as high."""
    facts, job = app(min_avg_pfc=1.0), workunit(fpops_bound=1e15)
    credits = []
    for _ in range(50):
        version_ = None if is_anonymous else version(100_000, 1.0, 1.0)
        given = result(host, version_, secs, peak_flops=times * PEAK, is_anonymous=is_anonymous)
        credits.append(decide(facts, given, job=job).grant.credit / USUAL)
    return fmean(credits)


@pytest.mark.parametrize("is_anonymous", [False, True])
@pytest.mark.parametrize(
    ("secs", "times"),
    [
        (1e3, 10.0),  # ten times the processors, or the benchmark, in the same time
        (1e2, 10.0),  # ten times as many that do a job in a tenth of the time
        (2e2, 10.0),  # half as efficient on ten times as many
        (1e4, 0.1),  # a tenth of the processors
        (1e3, 0.5),  # a driver that reports half of the speed
        (1e3, 1.04),  # the next benchmark
    ],
)
def test_other_processors_change_no_credit(secs: float, times: float, is_anonymous: bool) -> None:
    """Ten default claims, and then a factor of its own samples; a little change moves the average at once."""
    assert fifty_jobs(settled(), secs, times, is_anonymous=is_anonymous) == about(1.0, rel=1e-3)


def test_replicas_at_another_peak_set_no_others_credit() -> None:
    cheat, honest = settled(), settled()
    used = version(100_000, 1.0, 1.0)
    given = decide(app(min_avg_pfc=1.0), result(cheat, used, peak_flops=10 * PEAK), result(honest, used, 1100.0))
    assert [claim.is_approximate for claim in given.claims] == [True, False]
    assert given.grant.credit == about(1.1 * USUAL)


def test_an_average_of_pfc_begins_again_at_another_peak() -> None:
    host = settled(recent_pfc=Average(3, 2.0), waiting_pfc=Average(4, 0.5))
    facts = app(min_avg_pfc=2.0)
    [claim] = decide(facts, result(host, version(999, 1.0, 2.0), 500.0, peak_flops=3 * PEAK)).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.FIRST_JOBS, about(2e12))
    assert (host.pfc, host.peak_flops) == (Average(1, about(1.5)), 3 * PEAK)
    # These limit a factor above 1, and are read at three times the peak. The recent ones begin to wait, as none did.
    assert (host.waiting_pfc.avg, host.recent_pfc.avg) == (about(6.0), about(1.5))


def test_a_little_change_moves_all_averages() -> None:
    host = settled(clean_pfc=Average(50, 0.5))
    [claim] = decide(app(min_avg_pfc=1.0), result(host, version(999, 1.0, 1.0), peak_flops=1.02 * PEAK)).claims
    assert (claim.host_pfc_avg, claim.claimed_pfc) == (about(1.02), about(1e12))
    assert (host.pfc.n, host.pfc.avg, host.clean_pfc.avg) == (101, about(1.02), about(0.51))


@pytest.mark.parametrize(("times", "nsamples"), [(1.05, 101), (0.953, 101), (1.051, 1), (0.952, 1)])
def test_a_change_of_a_twentieth_is_still_a_little_one(times: float, nsamples: int) -> None:
    host = settled()
    decide(app(min_avg_pfc=1.0), result(host, version(999, 1.0, 1.0), peak_flops=times * PEAK))
    assert host.pfc.n == nsamples


def test_samples_that_do_not_wait_yet_move_too() -> None:
    host = settled(recent_pfc=Average(3, 2.0), samples_since=NOW)
    decide(app(), result(host, version(999, 1.0, 1.0), peak_flops=1.02 * PEAK), now=NOW)
    # 1.02 × (3 × 2 + 1) / 4
    assert host.recent_pfc.avg == about(1.785)


def test_a_new_computers_first_jobs_claim_less_than_the_default_if_they_took_less() -> None:
    claims = [decide(app(min_avg_pfc=1.0), result(record(), version(999, 1.0, 1.0), 500.0)).claims[0] for _ in "ab"]
    assert {claim.claim_rule for claim in claims} == {ClaimRule.VERSION_ONLY}
    assert claims[0].claimed_pfc == about(5e11)


@pytest.mark.parametrize("peak", [0.0, nan, 1e-50, 1e50])
def test_a_peak_that_is_not_known_changes_no_average(peak: float) -> None:
    host = settled()
    decide(app(), result(host, version(), peak_flops=peak))
    assert (host.pfc.n >= 100, host.pfc.avg, host.peak_flops) == (True, about(1.0, abs=0.011), PEAK)


@pytest.mark.parametrize("rules", [Rules.letter(), Rules.deployed()])
def test_other_rule_sets_know_no_peak(rules: Rules) -> None:
    host = record(100, 1.0)
    decide(app(rules), result(host, version(999, 1.0, 1.0), peak_flops=3 * PEAK), now=NOW)
    assert (host.peak_flops, host.pfc.n) == (None, 101)


@pytest.mark.parametrize("peak", [5e-324, 1e-280, 1e40, float("nan"), float("inf")])
@pytest.mark.parametrize("check", [False, True])
def test_no_peak_makes_an_average_overflow_or_stops_a_pass(peak: float, check: bool) -> None:
    host = record(100, 1e149, clean_pfc=Average(100, 1e-100), peak_flops=PEAK)
    facts = app(min_avg_pfc=1.0, host_scale_check=check)
    for number in (peak, 1.0, peak, 1.0):
        decide(facts, result(host, version(999, 1.0, 1.0), peak_flops=number))
        assert 0 <= (host.pfc.avg or 0.0) < 1e300
        assert 0 < (host.clean_pfc.avg or 0.0) < 1e300
        assert 0 < (host.peak_flops or 0.0) < 1e300


def test_a_record_with_just_enough_samples_does_not_begin_again() -> None:
    host = record(10, 1.0, et=AverageWithVariance(10, 1e-9), peak_flops=PEAK)
    # Its version has the factor of the one before, and too few samples of its own.
    [claim] = decide(app(min_avg_pfc=1.0), result(host, version(50, 1.0, 0.5))).claims
    assert (claim.claim_rule, claim.claimed_pfc) == (ClaimRule.VERSION_ONLY, about(0.5e12))
