"""Logged passes whose statistics differ from those that the previous one left: passes overlap, and others change
records.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any

import numpy as np

from credit.engine.facts import AppFacts, VersionFacts
from credit.engine.rules import Rules
from credit.previews.replay import Replay, ReplayedResult
from credit.previews.run import Settings
from credit.statistics.pass_arrays import RECORDS, RESULTS, VERSIONS, WORKUNITS, PassFacts

EST, PEAK, SECS = 1e13, 4e9, 3000.0
SAMPLE = SECS * PEAK / EST


def logged(number: int, version_n: int, version_avg: float, record_n: int = 0, **record: Any) -> PassFacts:
    """A pass with one single result of a host's version 7, as its version and its record 3 were read."""
    versions = np.array([(7, version_n, version_avg, nan, 0, 0)], VERSIONS)
    records = np.zeros(1, RECORDS)
    for name, value in {
        **{"id": 3, "host": 5, "version": 7, "type": 1, "pfc_n": record_n, "pfc_avg": SAMPLE if record_n else nan},
        **{
            name: nan
            for name in ("clean_avg", "recent_avg", "waiting_avg", "samples_at", "host_scale_at", "peak_flops")
        },
        **{"scale_probation": 1.0, **record},
    }.items():
        records[name] = value
    workunits = np.array([(number, EST, 1e15, 1, 1, 86400.0, 0, nan, nan, 0, 0)], WORKUNITS)
    numbers = (SECS, PEAK, 0.0, 9000.0, SECS, 4e9, nan, nan, 0.0, 0.0, 27.8, nan)
    results = np.array([(number, 0, 0, 7, 1, 0, 0, *numbers)], RESULTS)
    return PassFacts(10_000.0 + number, False, None, versions, records, workunits, results)


def replay(**fields: Any) -> Replay:
    before = Settings(AppFacts(1, Rules.letter()), {7: VersionFacts(7)})
    return Replay(before, replace(before, app=replace(before.app, **fields)))


def read(outcomes: list[ReplayedResult]) -> tuple[int | None, int | None]:
    """How many samples of the version the two runs' claims of a pass read."""
    claims = [decided.claim for decided in (outcomes[0].before, outcomes[0].after)]
    assert claims[0] is not None
    assert claims[1] is not None
    return claims[0].version_pfc_n, claims[1].version_pfc_n


def test_a_pass_that_overlapped_another_reads_the_statistics_of_before_both() -> None:
    site = replay(rules=replace(Rules.letter(), version_avg_weight=0.5))
    assert read(site.step(logged(1, 0, nan))) == (0, 0)
    # It began before the first pass ended, and waited for its record.
    assert read(site.step(logged(2, 0, nan, 1))) == (0, 0)
    # Both samples are there by now.
    assert read(site.step(logged(3, 2, SAMPLE, 2))) == (2, 2)
    assert site.guesses.versions == 0


def test_statistics_that_something_else_changed_are_those_that_were_logged() -> None:
    site = replay()
    site.step(logged(1, 0, nan))
    # Somebody put back older statistics of 40 samples.
    assert read(site.step(logged(2, 40, 3.0, 1))) == (40, 40)
    assert site.guesses.versions == 0


def test_failures_between_two_passes_count_for_both_runs() -> None:
    site = replay(host_scale_check=True)
    site.step(logged(1, 0, nan))
    # A job failed: a new spell of probation until 200,000, and a failure in a hundred.
    site.step(logged(2, 1, SAMPLE, 1, host_scale_at=200_000.0, failing_share=0.01))
    for run in site.runs:
        assert run.records[3].host_scale_time == 200_000.0
        # The valid result of the second pass took its part of the share again: 0.01 × (1 − 0.01)
        assert abs(run.records[3].failing_share - 0.0099) < 1e-12
    assert site.guesses.records == 0
