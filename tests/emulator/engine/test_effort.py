"""However hard a computer is to schedule for, a day of it takes a bounded number of events and steps."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import Emulation
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
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
from emulator.engine.timeline.results import Result
from tests.emulator.engine.test_kernel import scenarios as any_computers

DAYS = 5.0
HOUR_SECS = 3600.0
GPUS = ("NVIDIA", "AMD")
PERIOD_SECS = 1800.0

ups = st.builds(Availability, st.sampled_from([1.0, 0.7, 0.3]), st.sampled_from([1200.0, 20_000.0]))


@st.composite
def versions(draw: st.DrawFn, kinds: int) -> Version:
    """For CPUs, also half ones and several; or for one of the kinds of GPU, also parts of one and two."""
    if kinds and draw(st.booleans()):
        cpus, gpus = draw(st.sampled_from([0.1, 0.5, 1.0])), draw(st.sampled_from([0.25, 0.5, 1.0, 2.0]))
        return Version(4e9, cpus, draw(st.sampled_from(GPUS[:kinds])), gpus)
    return Version(1e9, draw(st.sampled_from([1.0, 0.5, 1.5, 2.0])))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Computers on which jobs do not fit evenly, come late, and cannot all be done in time."""
    kinds = draw(st.integers(0, 2))
    projects = []
    for name in ["A", "B", "C"][: draw(st.integers(1, 3))]:
        hours = draw(st.sampled_from([0.3, 1.0, 4.0, 30.0]))
        size = Normal(hours * HOUR_SECS * 1e9, draw(st.sampled_from([0.0, 0.2])) * hours * HOUR_SECS * 1e9)
        estimate = Normal(size.mean * draw(st.sampled_from([0.5, 1.0, 2.0])))
        latency_secs = hours * HOUR_SECS * draw(st.sampled_from([1.2, 3.0, 10.0, 100.0]))
        own = tuple(draw(st.lists(versions(kinds), min_size=1, max_size=2)))
        limit = draw(st.sampled_from([0, 0, 1]))
        share = 100.0 if name == "A" else draw(st.sampled_from([0.0, 10.0, 100.0]))
        apps = (App(name, own, size, estimate, latency_secs, max_concurrent=limit),)
        projects.append(Project(name, share, apps, draw(ups)))
    processors = [Processor(CPU, draw(st.integers(1, 4)), 1e9)]
    processors += [Processor(kind, draw(st.integers(1, 4)), 10e9, 0.2) for kind in GPUS[:kinds]]
    host = Host(tuple(processors), draw(ups), draw(ups), draw(ups), draw(ups))
    preferences = Preferences(draw(st.sampled_from([0.01, 0.2])), draw(st.sampled_from([0.0, 0.3])), PERIOD_SECS)
    return Scenario(host, tuple(projects), preferences)


def emulated(scenario: Scenario, policy: str) -> tuple[Emulation, Result]:
    run = Emulation(scenario, make_policy(policy, scenario, {}), DAYS)
    return run, run.result()


@pytest.mark.parametrize("policy", PolicyName)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(scenario=scenarios())
def test_events_and_steps_are_bounded_whatever_the_computer(policy: str, scenario: Scenario) -> None:
    run, result = emulated(scenario, policy)
    timeline = result.timeline
    assert timeline is not None
    jobs = sum(project.sent for project in result.projects)
    instances = sum(processor.instances for processor in scenario.host.processors)
    slices = DAYS * DAY_SECS / PERIOD_SECS * instances
    # A job comes, starts and ends; a slice and each state of the computer end; and a policy looks once a minute.
    assert run.events <= 3 * (jobs + slices + len(timeline.states)) + DAYS * 1440
    # A job with a deadline within a day is reported at once, and without a buffer is asked for alone.
    assert len(timeline.rpcs.at_secs) <= 2 * jobs + DAYS * 500
    # Simulations end where no job waits, however far away deadlines are: 56 steps an event at most in these, and 313 by
    # the letter, which simulates at each decision.
    assert run.slice_steps <= 500 * run.events


@pytest.mark.long
@pytest.mark.parametrize("policy", PolicyName)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(scenario=any_computers())
def test_events_are_bounded_with_limits_delays_and_changes_too(policy: str, scenario: Scenario) -> None:
    run, result = emulated(scenario, policy)
    timeline = result.timeline
    assert timeline is not None
    instances = sum(processor.instances for processor in scenario.host.processors)
    slices = DAYS * DAY_SECS / scenario.preferences.period_secs * instances
    things = sum(project.sent for project in result.projects) + len(timeline.states) + len(timeline.rpcs.at_secs)
    assert run.events <= 3 * (things + slices) + DAYS * 1440


@pytest.mark.parametrize("policy", ["rec", "ltd", "ltd-single"])
@pytest.mark.parametrize("part", [0.25, 0.5])
def test_parts_of_a_cpu_are_filled_and_then_no_more_is_asked_for(policy: str, part: float) -> None:
    # Jobs of 12 hours on a part of the one CPU; 2.4 + 2.4 hours of buffer.
    size = Normal(12 * HOUR_SECS * 1e9)
    app = App("a", (Version(1e9, part),), size, size, 100 * DAY_SECS)
    scenario = Scenario(Host((Processor(CPU, 1, 1e9),)), (Project("A", 1, (app,)),), Preferences(0.1, 0.1))
    _, result = emulated(scenario, policy)
    (project,) = result.projects
    assert result.figures.idle < 1e-4  # the oldest policy asks for one at a time
    # 1 / part at once, and in five days 10 times; those that run in the end, and for the last hours as many again.
    assert project.jobs == 9 / part
    assert project.sent <= project.jobs + 2 / part
