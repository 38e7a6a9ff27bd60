"""Facts about the owner's limits: hours, CPU time, CPUs, memory, use of the computer, exclusive applications."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.engine.limits import WeekHours, allowed_fractions
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    HOUR_SECS,
    WEEK_SECS,
    App,
    Availability,
    DayHours,
    Host,
    Hours,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    StartJob,
    Use,
    Version,
)
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import HostState, Result, Timeline

GFLOPS = 1e9
HOUR_JOB = 3600 * GFLOPS
NIGHTS = Hours(22, 6)
NO_LIMITS = Preferences()
LONG = 100 * 86400.0


def app(name: str = "cpu", hours: float = 1, **more: Any) -> App:
    size = Normal(hours * HOUR_JOB)
    return App(name, (Version(GFLOPS),), size, size, LONG, **more)


def gpu_app(cpus: float) -> App:
    size = Normal(HOUR_JOB)
    return App("gpu", (Version(GFLOPS, cpus=cpus, gpu="NVIDIA", gpus=1),), size, size, LONG)


def scenario(
    preferences: Preferences = NO_LIMITS, ncpus: int = 1, *apps: App, week_secs: float = 0.0, **host: Any
) -> Scenario:
    processors = [Processor(CPU, ncpus, GFLOPS)]
    if any(version.gpu for each in apps for version in each.versions):
        processors.append(Processor("NVIDIA", 1, GFLOPS))
    projects = (Project("A", 100, apps or (app(),)),)
    return Scenario(Host(tuple(processors), **host), projects, preferences, week_secs=week_secs)


def ran(what: Scenario, days: float = 7, policy: str = "rec", seed: int = 1) -> Result:
    return run(what, make_policy(policy, what, {}), days, seed)


def timeline_of(result: Result) -> Timeline:
    assert result.timeline is not None
    return result.timeline


def cpu_hours(result: Result) -> float:
    return sum(row.instance_secs[0] for row in result.projects) / HOUR_SECS


# Hours of the week ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "per_week"),
    [
        (Hours(), 168),
        (Hours(0, 24), 168),
        (Hours(8, 8), 168),  # two equal hours: no limit
        (Hours(24, 0), 0),  # the client's way to say never
        (Hours(9, 17.5), 7 * 8.5),
        (NIGHTS, 7 * 8),
        (Hours(22, 6, (DayHours(0, 0, 24), DayHours(6, 24, 0))), 24 + 5 * 8),  # all Sunday, not on Saturday
    ],
)
def test_hours_of_a_week(hours: Hours, per_week: float) -> None:
    assert sum(end - start for start, end in hours.spans_secs()) / HOUR_SECS == pytest.approx(per_week)


@given(
    st.integers(0, 24),
    st.integers(0, 24),
    st.integers(0, 6),
    st.floats(0, WEEK_SECS),
    st.lists(st.floats(0, 3 * WEEK_SECS), max_size=8),
)
def test_the_process_is_up_within_the_hours_whenever_it_starts(
    start: int, end: int, day: int, week_secs: float, times: list[float]
) -> None:
    hours = Hours(start, end, (DayHours(day, end, start),))
    process = WeekHours(hours, week_secs)
    for now in sorted(times):
        of_week = (week_secs + now) % WEEK_SECS
        edges = [at for span in hours.spans_secs() for at in span]
        if min((abs(of_week - at) for at in edges), default=1) > 1e-3:  # not within rounding of a change
            assert process.advance(now) == any(first <= of_week < last for first, last in hours.spans_secs())


@pytest.mark.parametrize("policy", PolicyName)
def test_no_policy_computes_outside_the_hours(policy: str) -> None:
    result = ran(scenario(Preferences(compute_hours=NIGHTS), week_secs=20 * HOUR_SECS), policy=policy)
    # 7 nights of 8 h. The run begins on a Sunday at 20:00, and ends on a Sunday at 20:00.
    assert cpu_hours(result) == pytest.approx(56, abs=0.1)
    assert result.figures.idle == pytest.approx(0, abs=0.002)
    blocks = timeline_of(result).blocks
    for start, end in zip(blocks.start_secs, blocks.end_secs, strict=True):
        of_day = (start / HOUR_SECS + 20) % 24
        assert of_day >= 22 - 1e-9 or of_day < 6
        assert of_day + (end - start) / HOUR_SECS <= (30 if of_day >= 22 else 6) + 1e-9


def test_the_timeline_names_the_hours() -> None:
    result = ran(scenario(Preferences(compute_hours=NIGHTS), week_secs=HOUR_SECS / 2), days=1)
    timeline = timeline_of(result)
    assert list(zip(timeline.state_from_secs, timeline.states, strict=True)) == [
        (0.0, HostState.COMPUTING),
        (5.5 * HOUR_SECS, HostState.OUTSIDE_HOURS),
        (21.5 * HOUR_SECS, HostState.COMPUTING),
    ]
    assert Reason.OUTSIDE_HOURS in result.decisions.reason
    assert timeline.bins.off.sum() == pytest.approx(16 * HOUR_SECS)


def test_nothing_is_fetched_outside_the_hours_of_the_network() -> None:
    """It fetches in the hours for what it runs until the next ones: with a buffer of a day it is never idle."""
    hours = Preferences(1.0, 0.5, network_hours=Hours(1, 2))
    result = ran(scenario(hours, week_secs=HOUR_SECS))
    rpcs = timeline_of(result).rpcs
    assert len(rpcs.at_secs) > 0
    assert all(1 <= (at / HOUR_SECS + 1) % 24 < 2 for at in rpcs.at_secs)
    assert result.figures.idle == pytest.approx(0, abs=1e-3)
    short = ran(scenario(Preferences(0.1, 0.1, network_hours=Hours(1, 2)), week_secs=HOUR_SECS))
    assert short.figures.idle > 0.5  # 0.2 days of work for each day of 24 h


# CPUs and CPU time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", PolicyName)
@pytest.mark.parametrize("percent", [10, 50, 100])
def test_a_limit_of_cpu_time_slows_tasks_and_is_not_idle_time(policy: str, percent: int) -> None:
    result = ran(scenario(Preferences(cpu_usage_percent=percent), ncpus=2), policy=policy)
    assert cpu_hours(result) == pytest.approx(2 * 168 * percent / 100, rel=0.002)
    assert result.figures.idle == pytest.approx(0, abs=0.002)
    assert set(timeline_of(result).blocks.usage) == {1.0}  # no half-empty lanes


@pytest.mark.parametrize(("cpus", "gpu_hours"), [(0.5, 168.0), (1.0, 84.0)])
def test_only_gpu_tasks_with_a_whole_cpu_are_throttled(cpus: float, gpu_hours: float) -> None:
    result = ran(scenario(Preferences(cpu_usage_percent=50), 2, gpu_app(cpus)))
    assert result.projects[0].instance_secs[1] / HOUR_SECS == pytest.approx(gpu_hours, rel=0.002)


def test_the_client_asks_for_less_work_when_it_is_throttled() -> None:
    """The buffer is a time: at 25 % of CPU time, a quarter of the work fills it, and a little later one more."""
    whole, quarter = (ran(scenario(Preferences(2, 0, cpu_usage_percent=percent)), days=0.01) for percent in (100, 25))
    assert (whole.projects[0].sent, quarter.projects[0].sent) == (49, 13)


@pytest.mark.parametrize(
    ("preferences", "usable"),
    [
        (Preferences(max_cpus_percent=50), 4),
        (Preferences(max_cpus_percent=1), 1),
        (Preferences(max_ncpus=3), 3),
        (Preferences(max_cpus_percent=25, max_ncpus=3), 2),
        (Preferences(max_ncpus=99), 8),
    ],
)
def test_cpus_that_preferences_forbid_are_neither_drawn_nor_idle(preferences: Preferences, usable: int) -> None:
    result = ran(scenario(preferences, 8), days=1)
    timeline = timeline_of(result)
    assert timeline.lanes == tuple((CPU, number) for number in range(usable))
    assert timeline.bins.instances.tolist() == [usable]
    assert timeline.bins.busy.sum() == pytest.approx(usable * 86400, rel=0.001)
    assert result.figures.idle == pytest.approx(0, abs=0.001)


# What the owner does ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preferences", "host", "reason"),
    [
        (Preferences(run_if_user_active=False), "in_use", Reason.IN_USE),
        (Preferences(run_on_batteries=False), "on_batteries", Reason.ON_BATTERIES),
        (Preferences(), "exclusive_app", Reason.EXCLUSIVE_APP),
    ],
)
def test_it_computes_while_the_owner_does_not(preferences: Preferences, host: str, reason: Reason) -> None:
    use = Use(1.0, hours=Hours(9.5, 17.5))
    uses: dict[str, Any] = {host: use}
    result = ran(scenario(preferences, **uses))
    assert cpu_hours(result) == pytest.approx(7 * 16, abs=0.1)
    assert result.figures.idle == pytest.approx(0, abs=0.002)
    assert reason in result.decisions.reason


@pytest.mark.parametrize("host", ["in_use", "on_batteries"])
def test_preferences_may_let_it_compute_all_the_same(host: str) -> None:
    uses: dict[str, Any] = {host: Use(0.7)}
    assert cpu_hours(ran(scenario(**uses))) == pytest.approx(168, abs=0.1)


def test_a_random_use_takes_its_part_of_the_hours() -> None:
    """Half of 12 hours a day: three quarters of the time are left. Over 200 days chance is below 2 points."""
    what = scenario(Preferences(run_if_user_active=False), in_use=Use(0.5, 3600, Hours(8, 20)))
    assert cpu_hours(ran(what, days=200)) / (200 * 24) == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize(
    ("preferences", "host"),
    [
        (Preferences(run_gpu_if_user_active=False), "in_use"),
        (Preferences(), "exclusive_gpu_app"),
    ],
)
def test_only_gpus_stand_still(preferences: Preferences, host: str) -> None:
    uses: dict[str, Any] = {host: Use(1.0, hours=Hours(0, 12))}
    result = ran(scenario(preferences, 1, app(), gpu_app(0.01), **uses))
    cpu, gpu = (secs / HOUR_SECS for secs in result.projects[0].instance_secs)
    assert cpu > 165
    assert gpu == pytest.approx(84, abs=0.2)
    assert result.figures.idle == pytest.approx(0, abs=0.01)


# Memory -----------------------------------------------------------------------------------------------------------


def test_tasks_that_do_not_fit_into_memory_wait() -> None:
    """8 GB, of which 50 % in use and 75 % else: of tasks of 2 GB, 2 run while it is in use, and 3 while it is not."""
    preferences = Preferences(ram_busy_fraction=0.5, ram_idle_fraction=0.75)
    large = app(working_set_bytes=2e9)
    result = ran(scenario(preferences, 4, large, ram_bytes=8e9, in_use=Use(1.0, hours=Hours(0, 12))))
    assert cpu_hours(result) == pytest.approx(168 * (2 + 3) / 2, rel=0.01)
    assert Reason.NO_MEMORY in result.decisions.reason


def test_a_smaller_task_runs_where_a_larger_one_waits() -> None:
    jobs = tuple(StartJob("A", name, HOUR_JOB, HOUR_JOB, LONG) for name in ("large", "large", "small"))
    apps = (app("large", working_set_bytes=3e9), app("small", working_set_bytes=1e9))
    preferences = Preferences(ram_idle_fraction=0.5)
    what = Scenario(
        Host((Processor(CPU, 3, GFLOPS),), ram_bytes=8e9),
        (Project("A", 100, apps, has_work=False),),
        preferences,
        jobs,
    )
    blocks = timeline_of(ran(what, days=1)).blocks
    assert list(zip(blocks.job, blocks.start_secs, strict=True)) == [(0, 0.0), (2, 0.0), (1, 3600.0)]


def test_a_server_sends_no_tasks_that_never_fit() -> None:
    large = app("large", working_set_bytes=7.5e9)  # 90 % of 8 GB are 7.2 GB
    result = ran(scenario(Preferences(), 1, large, ram_bytes=8e9))
    assert result.projects[0].sent == 0


# Estimates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preferences", "host", "cpu", "gpu"),
    [
        (Preferences(), {}, 1, 1),
        (Preferences(compute_hours=NIGHTS), {}, 8 / 24, 8 / 24),
        (Preferences(run_if_user_active=False), {"in_use": Use(0.25)}, 0.75, 0.75),
        (Preferences(run_gpu_if_user_active=False), {"in_use": Use(0.25)}, 1, 0.75),
        # In use in 2 of the 8 hours: of these, half is left.
        (
            Preferences(compute_hours=NIGHTS, run_if_user_active=False),
            {"in_use": Use(0.5, 60, Hours(20, 24))},
            7 / 24,
            7 / 24,
        ),
        (Preferences(), {"exclusive_app": Use(0.5), "exclusive_gpu_app": Use(0.5)}, 0.5, 0.25),
    ],
)
def test_the_part_of_the_time_that_limits_leave(
    preferences: Preferences, host: dict[str, Any], cpu: float, gpu: float
) -> None:
    whole = scenario(preferences, **host)
    found = allowed_fractions(whole.host, whole.preferences)
    assert found == pytest.approx((cpu, gpu))


@given(
    st.integers(0, 24), st.integers(0, 24), st.floats(0, 1), st.integers(1, 100), st.floats(0.1, 1), st.integers(0, 167)
)
def test_limits_lose_no_time(start: int, end: int, fraction: float, percent: int, on: float, week_hour: int) -> None:
    """Busy, idle and "not able" together are the whole run, and no more is done than it was able to."""
    preferences = Preferences(
        compute_hours=Hours(start, end), run_if_user_active=False, cpu_usage_percent=percent, max_ncpus=2
    )
    what = scenario(preferences, 4, week_secs=week_hour * HOUR_SECS, in_use=Use(fraction), on=Availability(on, 20_000))
    result = ran(what, days=2)
    bins = timeline_of(result).bins
    busy, off = bins.busy.sum(), bins.off.sum()
    assert busy + off <= 2 * 2 * 86400 * (1 + 1e-9)
    assert 0 <= result.figures.idle <= 1
    assert math.isclose(cpu_hours(result) * HOUR_SECS, busy * percent / 100, rel_tol=1e-6, abs_tol=1e-3)


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda: scenario(Preferences(compute_hours=Hours(0, 24.5))), "compute_hours.end_hour"),
        (lambda: scenario(Preferences(compute_hours=Hours(math.nan, 1))), "compute_hours.start_hour"),
        (lambda: scenario(Preferences(network_hours=Hours(0, 1, (DayHours(7, 0, 1),)))), "network_hours.day"),
        (lambda: scenario(Preferences(network_hours=Hours(0, 1, (DayHours(1, 0, 1),) * 2))), "network_hours.days"),
        (lambda: scenario(Preferences(cpu_usage_percent=0)), "cpu_usage_percent"),
        (lambda: scenario(Preferences(ram_busy_fraction=1.1)), "ram_busy_fraction"),
        (lambda: scenario(Preferences(max_ncpus=-1)), "max_ncpus"),
        (lambda: scenario(ram_bytes=1e304), "ram_bytes"),
        (lambda: scenario(in_use=Use(-0.1)), "in_use.fraction"),
        (lambda: scenario(in_use=Use(0.1, math.inf)), "in_use.mean_secs"),
        (lambda: scenario(Preferences(), 1, app(working_set_bytes=-1)), "A.cpu.working_set_bytes"),
        (lambda: scenario(week_secs=WEEK_SECS + 1), "week_secs"),
    ],
)
def test_impossible_limits_are_refused(made: Callable[[], Scenario], field: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        made()
    assert caught.value.field == field
