"""Traces of BOINC's validator, decided by this site's own in the database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from credit.models import App, Result
from portal.models import User
from tests.support.boinc_traces.comparison import TOLERANCE
from tests.support.boinc_traces.database import BoincRecords, replay
from tests.support.boinc_traces.traces import Trace, read_trace

pytestmark = pytest.mark.django_db

TRACES = Path(__file__).parents[2] / "data" / "traces"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return read_trace(TRACES)


def test_the_validator_decides_the_first_queues_as_boincs_did(trace: Trace) -> None:
    done = replay(trace)
    counts = {quantity: (tally.count, tally.ndiffering) for quantity, tally in done.comparison.tallies.items()}
    # 200 + 220 + 90 + 130 workunits
    assert (done.napps, done.nworkunits, done.nbehind_lost) == (4, 640, 0)
    assert counts == {
        "verdict": (1143, 0),
        "mode of a claim": (1130, 0),
        "claim": (1143, 0),
        "grant": (1143, 0),
        "credit of a workunit": (640, 0),
    }
    assert done.comparison.worst <= TOLERANCE
    assert (App.objects.count(), Result.objects.count(), User.objects.count()) == (0, 0, 0)


def test_a_trace_with_another_number_in_it_differs(trace: Trace) -> None:
    phase = trace.phases[3].number
    event = trace.events[phase][0]
    first = replace(event.results[0], elapsed_secs=event.results[0].elapsed_secs * 1.01)
    changed = [replace(event, results=(first, *event.results[1:])), *trace.events[phase][1:]]
    altered = Trace(trace.phases[3:4], {phase: changed}, trace.states)
    done = replay(altered)
    assert (done.napps, done.nworkunits) == (1, 130)
    assert done.comparison.worst > TOLERANCE


# Two versions of one app that differ in their number only, as ids: version 99 and version 100
OLD, NEW = 8, 4


def records(trace: Trace, *kept: tuple[int, int]) -> BoincRecords:
    """Of hosts that have these alone."""
    state = trace.states[0]
    assert state.versions[OLD]["version_num"] < state.versions[NEW]["version_num"]
    return BoincRecords(replace(state, hosts={key: {} for key in kept}))


def test_what_a_renamed_record_is_behind_is_told_apart_from_its_second_result_on(trace: Trace) -> None:
    history = records(trace, (1, OLD))
    assert [history.take([(1, NEW)], False) for _ in range(2)] == [False, True]
    # Renamed back, it is not what the older version's record is here.
    assert history.take([(1, OLD)], False)


def test_a_record_that_moved_or_is_a_newer_versions_is_not_what_ours_inherits(trace: Trace) -> None:
    history = records(trace, (1, OLD), (2, NEW))
    assert not history.take([(1, OLD)], False)
    assert history.take([(1, NEW)], False)
    assert history.take([(2, OLD)], False)


def test_of_two_results_of_one_record_an_update_is_lost_but_not_of_late_ones(trace: Trace) -> None:
    history = records(trace, (1, NEW), (2, NEW))
    assert [history.take([(1, NEW)] * 2, False), history.take([(1, NEW)], False)] == [False, True]
    assert [history.take([(2, NEW)] * 2, True), history.take([(2, NEW)], True)] == [False, False]
    # Nothing is lost where a record is only made, or where there is none.
    assert [history.take([key], False) for key in [(3, NEW), (3, NEW), (3, 9999), (3, 1_000_002)]] == [False] * 4
