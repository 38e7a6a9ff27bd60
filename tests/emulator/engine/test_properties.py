"""What holds for every run of the emulator, whatever the scenario."""

from __future__ import annotations

import os
import subprocess
import sys
from bisect import bisect_right
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    App,
    Availability,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    Version,
)
from emulator.engine.timeline.results import NO_LANE, DecisionKind, Result, Timeline
from emulator.files.presets import preset

HOUR_FLOP = 3600e9


def app(name: str, *versions: Version, hours: float = 1.0, spread: float = 0.1, latency_days: float = 5.0) -> App:
    return App(
        name,
        versions or (Version(1e9),),
        Normal(hours * HOUR_FLOP, spread * hours * HOUR_FLOP),
        Normal(hours * HOUR_FLOP),
        latency_days * 86400,
    )


def mixed(*, on: float = 1.0, gpu_active: float = 1.0) -> Scenario:
    """Three CPUs and two GPUs; whole, half and four-fold GPU jobs, jobs of one and of two CPUs, tight deadlines."""
    return Scenario(
        Host(
            (Processor(CPU, 3, 1e9), Processor("NVIDIA", 2, 20e9, 0.2)),
            on=Availability(on, 7200.0),
            gpu_active=Availability(gpu_active, 3600.0),
        ),
        (
            Project("A", 50, (app("a", Version(2e9, cpus=2.0)), app("t", hours=0.5, latency_days=0.1))),
            Project("B", 30, (app("b", Version(4e9, cpus=0.3, gpu="NVIDIA", gpus=1.0), Version(1e9)),)),
            Project("C", 20, (app("c", Version(2e9, cpus=0.1, gpu="NVIDIA", gpus=0.5), hours=3.0),)),
        ),
        Preferences(0.1, 0.3),
    )


SCENARIOS = {
    "always on": mixed(),
    "often off": mixed(on=0.6),
    "GPU often away": mixed(gpu_active=0.5),
    "all of it": mixed(on=0.8, gpu_active=0.7),
}


@pytest.fixture(scope="module", params=list(SCENARIOS))
def outcome(request: pytest.FixtureRequest) -> tuple[Scenario, Result, Timeline]:
    scenario = SCENARIOS[request.param]
    result = run(scenario, Rec(), 12.0, seed=3)
    assert result.timeline is not None
    return scenario, result, result.timeline


def test_the_timeline_accounts_for_every_second(outcome: tuple[Scenario, Result, Timeline]) -> None:
    _, result, timeline = outcome
    bins = timeline.bins
    busy = bins.busy.sum(axis=1)
    capacity = bins.instances[:, None] * bins.width_secs
    idle = capacity - busy - bins.off
    # Never below 0: no processor runs more than it has, nor while it is away.
    assert idle.min() > -1e-6
    flops = np.array([processor.counted_flops for processor in outcome[0].host.processors])
    able_flop = ((capacity - bins.off).sum(axis=1) * flops).sum()
    assert result.figures.idle == pytest.approx((idle.sum(axis=1) * flops).sum() / able_flop, abs=1e-9)


def test_no_lane_holds_more_than_one_instance(outcome: tuple[Scenario, Result, Timeline]) -> None:
    timeline = outcome[2]
    blocks = timeline.blocks
    changes: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for start, end, lane, usage in zip(blocks.start_secs, blocks.end_secs, blocks.lane, blocks.usage, strict=True):
        assert end > start
        if lane != NO_LANE:
            changes[lane] += [(start, usage), (end, -usage)]
    assert set(changes) <= set(range(len(timeline.lanes)))
    for loads in changes.values():
        load = 0.0
        for _, change in sorted(loads):
            load += change
            assert load < 1 + 1e-6


def test_work_done_is_work_timed(outcome: tuple[Scenario, Result, Timeline]) -> None:
    scenario, result, timeline = outcome
    flops = [processor.counted_flops for processor in scenario.host.processors]
    for index, project in enumerate(result.projects):
        timed = timeline.bins.busy[:, index].sum(axis=1)
        assert project.instance_secs == pytest.approx(tuple(timed), rel=1e-9, abs=1e-3)
        assert project.used_flop == pytest.approx(sum(timed * flops), rel=1e-9)


def test_every_finished_job_ran_as_long_as_it_is() -> None:
    # Jobs of exactly 2.5 hours, preempted at the end of time slices; two hours lie between two blocks of one.
    projects = tuple(
        Project(name, share, (app("x", hours=2.5, spread=0.0),)) for name, share in (("A", 1), ("B", 2), ("C", 4))
    )
    result = run(Scenario(Host((Processor(CPU, 2, 1e9),)), projects), Rec(), 10.0)
    assert result.timeline is not None
    blocks = result.timeline.blocks
    ran: dict[int, list[float]] = defaultdict(list)
    for start, end, job in zip(blocks.start_secs, blocks.end_secs, blocks.job, strict=True):
        ran[job].append(end - start)
    decisions = result.decisions
    ended = [job for kind, job in zip(decisions.kind, decisions.job, strict=True) if kind == DecisionKind.END]
    assert len(ended) >= sum(project.jobs for project in result.projects) > 180  # the last are not reported yet
    assert max(len(ran[job]) for job in ended) > 1
    for job in ended:
        assert sum(ran[job]) == pytest.approx(9000.0, rel=1e-9)


def test_no_job_starts_before_it_arrives(outcome: tuple[Scenario, Result, Timeline]) -> None:
    timeline = outcome[2]
    arrivals: list[float] = []  # by job: they are numbered as they arrive
    for at, got in zip(timeline.rpcs.at_secs, timeline.rpcs.got, strict=True):
        arrivals += [at] * got
    assert len(arrivals) > 100
    for start, job in zip(timeline.blocks.start_secs, timeline.blocks.job, strict=True):
        assert start >= arrivals[job]


def test_nothing_runs_while_the_computer_is_off() -> None:
    result = run(SCENARIOS["often off"], Rec(), 5.0, seed=2)
    timeline = result.timeline
    assert timeline is not None
    starts, states = list(timeline.state_from_secs), list(timeline.states)
    assert states.count(3) > 5
    for start, end in zip(timeline.blocks.start_secs, timeline.blocks.end_secs, strict=True):
        first = bisect_right(starts, start) - 1
        assert states[first] == 0
        assert first + 1 == len(starts) or end <= starts[first + 1] + 1e-6


@hypothesis_settings(max_examples=8)
@given(
    shares=st.lists(st.integers(5, 100), min_size=2, max_size=4),
    cpus=st.integers(1, 4),
    hours=st.floats(0.5, 4.0),
)
def test_shares_are_honoured_within_one_percent_over_100_days(shares: list[int], cpus: int, hours: float) -> None:
    projects = tuple(
        Project(f"P{i}", share, (app("x", hours=hours, latency_days=20.0),)) for i, share in enumerate(shares)
    )
    scenario = Scenario(Host((Processor(CPU, cpus, 1e9),)), projects)
    result = run(scenario, Rec(), 100.0, timeline=False)
    for project in result.projects:
        assert abs(project.got_fraction - project.share) < 0.01


def said_of(result: Result) -> object:
    return result.figures, result.projects


def test_one_seed_has_one_result_and_another_another() -> None:
    first, again, other = (said_of(run(mixed(on=0.7), Rec(), 5.0, seed=seed)) for seed in (7, 7, 8))
    assert first == again != other


@pytest.mark.system
def test_the_result_does_not_depend_on_the_order_of_hashes() -> None:
    """This process has one order, and the other has another."""
    program = (
        "from emulator.files.presets import preset; from emulator.engine.run import run;"
        "from emulator.engine.policies.rec import Rec;"
        "result = run(preset('n10_projects').scenario, Rec(), 3.0); print(result.figures, result.projects)"
    )
    result = run(preset("n10_projects").scenario, Rec(), 3.0)
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed == f"{result.figures} {result.projects}\n"


def test_recording_and_explaining_change_nothing() -> None:
    scenario = mixed(on=0.8)
    bare = run(scenario, Rec(), 5.0, timeline=False, explain_secs=(0.0, 0.0))
    full = run(scenario, Rec(), 5.0)
    assert said_of(bare) == said_of(full)
    assert bare.timeline is None
    assert len(full.decisions) > len(bare.decisions)
    assert len(full.decisions) == len(bare.decisions) + bare.decisions.dropped


def test_ten_years_need_no_more_memory_than_the_timeline_has_bins() -> None:
    # One job of a day after the other: 3,650 jobs, and still 2,048 bins and 512 samples.
    scenario = Scenario(
        Host((Processor(CPU, 1, 1e9),)),
        (Project("A", 100, (app("a", hours=24.0, latency_days=1000.0),)),),
    )
    result = run(scenario, Rec(), 3650.0)
    assert result.timeline is not None
    assert result.projects[0].jobs == pytest.approx(3650, rel=0.01)
    assert result.timeline.bins.busy.shape == (1, 1, 2048)
    assert len(result.timeline.levels.at_secs) <= 513
    assert result.timeline.bins.busy.sum() == pytest.approx(3650 * 86400, rel=1e-6)
