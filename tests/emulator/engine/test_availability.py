"""A computer that comes and goes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.engine.availability import UpDown
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.random_numbers import random_stream
from emulator.engine.run import run
from emulator.engine.scenario import Availability, ScenarioError
from emulator.files.presets import preset

Trace = tuple[tuple[float, float], ...]


@pytest.mark.parametrize("policy", PolicyName)
@pytest.mark.parametrize(("on", "active"), [(0.5, 1), (1, 0.5), (0.7, 0.7)])
def test_with_work_in_the_buffer_no_processor_idles_after_an_interruption(
    policy: str, on: float, active: float
) -> None:
    # Two projects that always have jobs, half a day in the buffer; interruptions of some hours.
    scenario = preset("s1_two_equal_cpu").scenario
    host = replace(scenario.host, on=Availability(on, 6 * 3600), active=Availability(active, 6 * 3600))
    scenario = replace(scenario, host=host)
    result = run(scenario, make_policy(policy, scenario, {}), 10, 1)
    assert result.figures.idle < 1e-9


def _process(process: Availability) -> UpDown:
    return UpDown(process, random_stream(1, "host", "on"))


@pytest.mark.parametrize(
    ("trace", "changes"),
    # Of 100 s, from 0 to 250 s: when the state changes, the first change from what it is at 0.
    [
        (((10, 20),), [10, 20, 110, 120, 210, 220]),
        (((0, 20),), [20, 100, 120, 200, 220]),  # up when it begins
        (((90, 100),), [90, 100, 190, 200]),
        (((0, 20), (90, 100)), [20, 90, 120, 190, 220]),  # up over the end: one interval from 90 to 120
        (((0, 100),), []),
        ((), []),
    ],
)
def test_a_trace_is_replayed_and_then_begins_again(trace: Trace, changes: list[float]) -> None:
    process = _process(Availability.of_trace(trace, 100))
    seen, up = [], process.up
    for at in range(250):
        if process.advance(at) != up:
            up = process.up
            seen.append(at)
        assert up == any(since <= at % 100 < until for since, until in trace)
    assert seen == changes


@given(st.lists(st.floats(0, 1e6), max_size=30, unique=True).map(sorted), st.floats(1e6, 1e8))
def test_a_trace_is_up_as_long_as_its_intervals_say(moments: list[float], trace_secs: float) -> None:
    trace = tuple(pairwise(moments))[::2]
    availability = Availability.of_trace(trace, trace_secs)
    process = _process(availability)
    up_secs = at = 0.0
    while at < 3 * trace_secs:
        until = min(process.until_secs, 3 * trace_secs)
        up_secs += (until - at) * process.up
        at = until
        process.advance(at)
    assert up_secs == pytest.approx(3 * trace_secs * availability.fraction, rel=1e-6, abs=1e-3)


def test_jobs_run_only_while_the_trace_is_up() -> None:
    # Up from 6:00 to 18:00 of each day: 4 CPUs compute half of 10 days, and nothing else.
    scenario = preset("s1_two_equal_cpu").scenario
    on = Availability.of_trace(((6 * 3600, 18 * 3600),), 86400)
    scenario = replace(scenario, host=replace(scenario.host, on=on))
    result = run(scenario, make_policy(PolicyName.REC, scenario, {}), 10, 1)
    assert on.fraction == 0.5
    assert result.timeline is not None
    assert result.figures.idle < 1e-9
    blocks = result.timeline.blocks
    for start, end in zip(blocks.start_secs, blocks.end_secs, strict=True):
        assert 6 * 3600 <= start % 86400 < end % 86400 or end % 86400 == 18 * 3600
    assert sum(blocks.end_secs) - sum(blocks.start_secs) == pytest.approx(4 * 5 * 86400)


@pytest.mark.parametrize(
    ("trace", "trace_secs", "complaint"),
    [
        (((5, 5),), 100, "empty or does not follow"),
        (((0, 5), (5, 9)), 100, "empty or does not follow"),
        (((8, 9), (1, 2)), 100, "empty or does not follow"),
        (((0, 101),), 100, "101 is not a number from 0 to 100"),
        (((0, float("nan")),), 100, "nan is not a number"),
        (((0, 5),), 0, "on.trace_secs: 0 is not a number from 1"),
        (((0, 5),), float("inf"), "on.trace_secs: inf"),
        (tuple((at / 4, at / 4 + 0.1) for at in range(100)), 25, "the limit is 0 to 25"),
        (tuple((2 * at, 2 * at + 1) for at in range(20_001)), 1e6, "the limit is 0 to 20,000"),
    ],
)
def test_a_trace_must_be_in_order_and_within_limits(trace: Trace, trace_secs: float, complaint: str) -> None:
    scenario = preset("s1_two_equal_cpu").scenario
    with pytest.raises(ScenarioError) as refused:
        replace(scenario, host=replace(scenario.host, on=Availability(trace=trace, trace_secs=trace_secs)))
    assert complaint in str(refused.value)
