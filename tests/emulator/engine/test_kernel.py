"""The loop in arrays makes the same run as the client of objects, which own policies have, in every column of every
decision."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.quirks import BOINC, Quirks
from emulator.engine.run import Emulation
from emulator.engine.scenario import (
    CPU,
    App,
    Availability,
    ChangeBuffer,
    ChangeProcessor,
    ChangeShare,
    Detach,
    Downtime,
    Event,
    HasWork,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ServerUp,
    Suspend,
    Use,
    Version,
)
from emulator.engine.timeline.results import Blocks, Decisions, Misses, Result, Rpcs
from emulator.files.presets import preset
from tests.support.emulated_client import OnObjects

HOUR_SECS = 3600.0
GPUS = ("NVIDIA", "AMD")
POLICIES = tuple(PolicyName)
PLAIN = Quirks()
ups = st.builds(Availability, st.sampled_from([1.0, 1.0, 0.7, 0.3]), st.sampled_from([1200.0, 20_000.0]))
trace = Availability.of_trace(((0.0, 5000.0), (9000.0, 30_000.0)), 40_000.0)
servers = st.one_of(ups, ups, st.just(trace))
quirks = st.one_of(
    st.just(PLAIN), st.just(PLAIN), st.just(BOINC), st.builds(Quirks, *[st.booleans()] * len(Quirks.__slots__))
)


@st.composite
def versions(draw: st.DrawFn, kinds: int) -> Version:
    if kinds and draw(st.booleans()):
        cpus, gpus = draw(st.sampled_from([0.1, 0.5, 1.0])), draw(st.sampled_from([0.25, 0.5, 1.0, 2.0]))
        return Version(4e9, cpus, draw(st.sampled_from(GPUS[:kinds])), gpus)
    return Version(1e9, draw(st.sampled_from([1.0, 1.0, 0.5, 1.5, 2.0])))


@st.composite
def apps(draw: st.DrawFn, name: str, kinds: int) -> App:
    hours = draw(st.sampled_from([0.3, 1.0, 4.0, 30.0]))
    mean = hours * HOUR_SECS * 1e9
    return App(
        name,
        tuple(draw(st.lists(versions(kinds), min_size=1, max_size=2))),
        Normal(mean, draw(st.sampled_from([0.0, 0.2])) * mean),
        Normal(mean * draw(st.sampled_from([0.5, 1.0, 2.0])), draw(st.sampled_from([0.0, 0.1])) * mean),
        hours * HOUR_SECS * draw(st.sampled_from([1.2, 3.0, 10.0, 100.0])),
        error_rate=draw(st.sampled_from([0.0, 0.0, 0.1])),
        max_concurrent=draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1, 3])),
        working_set_bytes=draw(st.sampled_from([0.0, 6e9])),
    )


@st.composite
def events(draw: st.DrawFn, projects: int) -> Event:
    at = draw(st.floats(0.0, 2e5))
    project = f"P{draw(st.integers(0, projects - 1))}"
    all_kinds: list[Event] = [
        Suspend(at, project, True),
        ChangeShare(at, project, 50.0),
        Detach(at, project),
        HasWork(at, project, False),
        ServerUp(at, project, False),
        ChangeBuffer(at, 0.1, 0.1),
        ChangeProcessor(at, CPU, 2),
    ]
    return draw(st.sampled_from(all_kinds))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    kinds, count = draw(st.integers(0, 2)), draw(st.integers(1, 4))
    projects = [
        Project(
            f"P{number}",
            100.0 if number == 0 else draw(st.sampled_from([0.0, 10.0, 100.0])),
            tuple(draw(apps(f"a{app}", kinds)) for app in range(draw(st.integers(1, 2)))),
            draw(servers),
            downtimes=draw(st.sampled_from([(), (), (Downtime(20_000.0, 9000.0, 70_000.0), Downtime(1e5, 500.0))])),
            reply_delay_secs=draw(st.sampled_from([0.0, 0.0, 0.0, 2.0, 700.0])),
            workload_check=draw(st.integers(0, 5)) == 0,
            uses_dcf=draw(st.booleans()),
            max_concurrent=draw(st.sampled_from([0, 0, 0, 0, 0, 2])),
            request_delay_secs=draw(st.sampled_from([0.0, 300.0])),
            suspended=draw(st.integers(0, 9)) == 0,
        )
        for number in range(count)
    ]
    processors = [Processor(CPU, draw(st.sampled_from([1, 2, 4, 16])), 1e9)]
    processors += [Processor(kind, draw(st.sampled_from([1, 2, 4])), 10e9, 0.2) for kind in GPUS[:kinds]]
    use = Use(draw(st.sampled_from([0.0, 0.2])), 7200.0)
    ram = draw(st.sampled_from([0.0, 8e9]))
    host = Host(tuple(processors), draw(ups), draw(ups), draw(ups), draw(ups), ram_bytes=ram, in_use=use)
    preferences = Preferences(
        draw(st.sampled_from([0.01, 0.2, 1.0])),
        draw(st.sampled_from([0.0, 0.3])),
        draw(st.sampled_from([1800.0, 3600.0])),
        cpu_usage_percent=draw(st.sampled_from([100.0, 60.0])),
        run_if_user_active=draw(st.booleans()),
    )
    return Scenario(host, tuple(projects), preferences, events=tuple(draw(st.lists(events(count), max_size=3))))


def on_objects(scenario: Scenario, policy: str, days: float, quirks: Quirks) -> tuple[Emulation, Result]:
    run = Emulation(scenario, OnObjects(make_policy(policy, scenario, {})), days, quirks=quirks)
    return run, run.result()


def in_arrays(scenario: Scenario, policy_name: str, days: float, quirks: Quirks) -> tuple[Emulation, Result]:
    """Compiled if this process has the compiled kernel."""
    run = Emulation(scenario, make_policy(policy_name, scenario, {}), days, quirks=quirks)
    return run, run.result()


def columns(record: Decisions | Blocks | Rpcs | Misses, *left_out: str) -> dict[str, list[float]]:
    names = [field.name for field in fields(record) if field.name not in left_out]
    return {name: list(getattr(record, name)) for name in names}


def assert_same(scenario: Scenario, policy: str, days: float, quirks: Quirks = PLAIN) -> None:
    run, result = on_objects(scenario, policy, days, quirks)
    run_in_arrays, other = in_arrays(scenario, policy, days, quirks)
    limits = ("from_secs", "to_secs", "dropped")
    assert columns(result.decisions, *limits) == columns(other.decisions, *limits)
    assert (result.figures, result.projects, result.overdue) == (other.figures, other.projects, other.overdue)
    assert run.events == run_in_arrays.events
    mine, others = result.timeline, other.timeline
    assert mine is not None
    assert others is not None
    assert columns(mine.blocks, "complete") == columns(others.blocks, "complete")
    assert columns(mine.rpcs) == columns(others.rpcs)
    assert columns(mine.misses) == columns(others.misses)
    np.testing.assert_allclose(np.array(mine.levels.standing), np.array(others.levels.standing), rtol=1e-9)
    np.testing.assert_allclose(np.array(mine.levels.buffer_secs), np.array(others.levels.buffer_secs), rtol=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["s1_two_equal_cpu", "s2_gpu_example1"])
def test_a_preset_runs_the_same_in_arrays(name: str, policy: str) -> None:
    assert_same(preset(name).scenario, policy, 0.3)


# Python as it is where requirements-emulator.txt was not installed, though this site compiles what it runs.
WITHOUT_NUMBA = """
import sys
from importlib import metadata

def version(name, found=metadata.version):
    if name == "numba":
        raise metadata.PackageNotFoundError(name)
    return found(name)

metadata.version = version
sys.modules["numba"] = sys.modules["llvmlite"] = None

from emulator.engine.kernel.built import is_missing, start_building
from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.files.presets import preset

assert not is_missing()
start_building()
print(run(preset("s2_gpu_example1").scenario, Rec(), 1.0).figures)
"""


@pytest.mark.system
def test_without_numba_the_same_run_is_made() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", WITHOUT_NUMBA]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    _, result = in_arrays(preset("s2_gpu_example1").scenario, PolicyName.REC, 1.0, PLAIN)
    assert done.stdout.strip() == str(result.figures)


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES)
@settings(
    max_examples=int(os.environ.get("KERNEL_EXAMPLES", "20")),
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # to make one smaller takes too long
    suppress_health_check=list(HealthCheck),
)
@given(scenario=scenarios(), quirks=quirks)
def test_any_computer_runs_the_same_in_arrays(policy: str, scenario: Scenario, quirks: Quirks) -> None:
    assert_same(scenario, policy, float(os.environ.get("KERNEL_DAYS", "0.3")), quirks)


@pytest.mark.system
@pytest.mark.long
def test_any_computer_runs_the_same_compiled_and_with_indexes_checked(tmp_path: Path) -> None:
    """Compiling takes a minute of processor time, so it is done once, in a process of its own."""
    pytest.importorskip("numba")
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path),
        "NUMBA_DISABLE_JIT": "0",
        "EMULATOR_BUILDS_KERNEL": "1",
        "NUMBA_BOUNDSCHECK": "1",
        "KERNEL_DAYS": "4",
        "KERNEL_EXAMPLES": "60",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "long", __file__, "-k", "in_arrays"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
