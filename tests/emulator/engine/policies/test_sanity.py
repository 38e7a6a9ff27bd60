"""Whatever the scenario, the debt policies keep to what the computer has, and the same seed gives the same run."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Attach,
    Availability,
    ChangeBuffer,
    ChangeShare,
    Detach,
    HasWork,
    Host,
    NewApp,
    NoNewTasks,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ServerUp,
    Suspend,
    Version,
)
from emulator.engine.timeline.results import Result
from tests.support.emulated_client import GPU, HOUR_SECS

DAYS = 1.0
WITHOUT_RULE = {"eligibility_rule": False}

CPU_VERSIONS = (Version(1e9),)
GPU_VERSIONS = (Version(2e9, 0.2, GPU, 1.0),)
versions = st.sampled_from(CPU_VERSIONS + GPU_VERSIONS)
ups = st.builds(Availability, st.sampled_from([1.0, 0.7, 0.3]), st.just(5000.0))


@st.composite
def apps(draw: st.DrawFn, name: str) -> App:
    """An application of one or two versions; jobs of some minutes to some days, also tight and misestimated ones."""
    hours = draw(st.sampled_from([0.2, 1.0, 7.0, 60.0]))
    size = Normal(hours * HOUR_SECS * 1e9, draw(st.sampled_from([0.0, 0.2])) * hours * HOUR_SECS * 1e9)
    estimate = Normal(size.mean * draw(st.sampled_from([0.3, 1.0, 3.0])))
    latency_secs = draw(st.sampled_from([1.2, 10.0, 100.0])) * hours * HOUR_SECS
    return App(name, tuple(draw(st.lists(versions, min_size=1, max_size=2))), size, estimate, latency_secs)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Up to three projects with all that may happen to them."""
    names = ["A", "B", "C"][: draw(st.integers(1, 3))]
    projects = []
    for name in names:
        own = tuple(draw(apps(f"{name}{number}")) for number in range(draw(st.integers(0, 2))))
        share = draw(st.sampled_from([0.0, 1.0, 50.0]))
        projects.append(Project(name, share if name != "A" else 100.0, own, draw(ups), attached=draw(st.booleans())))
    at, which = st.floats(0, DAYS * DAY_SECS), st.sampled_from(names)
    events = draw(
        st.lists(
            st.one_of(
                st.builds(Attach, at, which),
                st.builds(Detach, at, which),
                st.builds(NewApp, at, which, apps("late")),
                st.builds(HasWork, at, which, st.booleans()),
                st.builds(ServerUp, at, which, st.booleans()),
                st.builds(ChangeShare, at, which, st.sampled_from([0.0, 10.0])),
                st.builds(Suspend, at, which, st.booleans()),
                st.builds(NoNewTasks, at, which, st.booleans()),
                st.builds(ChangeBuffer, at, st.just(0.01), st.just(1.0)),
            ),
            max_size=6,
        )
    )
    processors = [Processor(CPU, draw(st.integers(1, 4)), 1e9)]
    if draw(st.booleans()):
        processors.append(Processor(GPU, draw(st.integers(1, 2)), 2e9))
    host = Host(tuple(processors), draw(ups), draw(ups), draw(ups), draw(ups))
    return Scenario(
        host, tuple(projects), Preferences(period_secs=draw(st.sampled_from([600.0, 3600.0]))), events=tuple(events)
    )


def numbers(result: Result) -> list[object]:
    """What is compared of two runs."""
    return [result.figures, *result.projects, *result.decisions.at_secs]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("ltd", {}), ("ltd", WITHOUT_RULE), ("ltd-single", {}), ("debt", {})],
    ids=["ltd", "ltd without the rule", "ltd-single", "debt"],
)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(what=scenarios())
def test_a_policy_keeps_to_what_there_is_and_is_the_same_each_time(
    name: str, parameters: dict[str, bool], what: Scenario
) -> None:
    make = partial(make_policy, name, what, parameters)
    result = run(what, make(), DAYS)
    for kind, processor in enumerate(what.host.processors):
        used_secs = sum(row.instance_secs[kind] for row in result.projects)
        assert used_secs <= processor.instances * DAYS * DAY_SECS * (1 + 1e-9)
    for row in result.projects:
        assert row.jobs == row.met + row.late
        assert row.jobs <= row.sent
    assert 0 <= result.figures.idle <= 1
    assert 0 <= result.figures.wasted <= 1
    assert numbers(result) == numbers(run(what, make(), DAYS))
