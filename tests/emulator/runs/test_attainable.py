"""The least share violation that any schedule could have had, against arithmetic, and against what the policies do."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.engine.policies.long_term_debt import LongTermDebt
from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Attach,
    Availability,
    ChangeProcessor,
    Event,
    HasWork,
    Host,
    NewApp,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    StartJob,
    StartState,
    Version,
)
from emulator.engine.timeline.results import Result
from emulator.files.presets import preset
from emulator.files.scenario import read_folder
from emulator.files.scenario_json import read_document
from emulator.runs import attainable
from emulator.runs.attainable import figures_of_merit, least_violation

CASES = Path(__file__).parents[2] / "data" / "emulator" / "cases"
GPU = Processor("NVIDIA", 1, 10e9, 0.2)  # counts as 2 GFLOPS, twice the CPU
HOUR = Normal(3600e9)
ON_CPU = App("cpu", (Version(1e9),), HOUR, HOUR, 10 * DAY_SECS)
ON_GPU = App("gpu", (Version(2e9, cpus=0.0, gpu="NVIDIA", gpus=1.0),), HOUR, HOUR, 10 * DAY_SECS)


def result_of(*projects: Project, gpu: bool = True, events: tuple[Event, ...] = (), days: float = 10.0) -> Result:
    processors = (Processor(CPU, 1, 1e9), GPU) if gpu else (Processor(CPU, 1, 1e9),)
    scenario = Scenario(Host(processors), projects, Preferences(0.1, 0.1), events=events)
    return run(scenario, Rec(), days, timeline=False)


@pytest.mark.parametrize(
    ("shares", "apps", "least"),
    [
        # Both can do everything: any division is possible.
        ((50, 50), ((ON_CPU, ON_GPU), (ON_CPU, ON_GPU)), 0.0),
        # A has 2/3 of all speed on the GPU alone and B the CPU: |2/3 - 1/2| + |1/3 - 1/2| = 1/3.
        ((50, 50), ((ON_GPU,), (ON_CPU,)), 1 / 3),
        # A on the GPU, B on both: A takes 3/4 of the GPU, as the 6.6 document says.
        ((50, 50), ((ON_GPU,), (ON_CPU, ON_GPU)), 0.0),
        # A can have no more than the GPU's 2/3 of its 90 %: (0.9 - 2/3) + (1/3 - 0.1) = 7/15.
        ((90, 10), ((ON_GPU,), (ON_CPU, ON_GPU)), 7 / 15),
        # At most one of A's jobs runs at a time, whichever processor: on the GPU.
        ((90, 10), ((replace(ON_CPU, max_concurrent=1),), (ON_CPU, ON_GPU)), 0.9 - 1 / 3 + 2 / 3 - 0.1),
        # Nobody has work for the GPU: of the CPU's work each can have half.
        ((50, 50), ((ON_CPU,), (ON_CPU,)), 0.0),
        # A cannot run at all.
        ((50, 50), ((), (ON_CPU,)), 1.0),
    ],
)
def test_the_bound_is_what_the_processors_allow(
    shares: tuple[float, float], apps: tuple[tuple[App, ...], tuple[App, ...]], least: float
) -> None:
    projects = [Project(name, share, own) for name, share, own in zip("AB", shares, apps, strict=True)]
    assert least_violation(result_of(*projects)) == pytest.approx(least, abs=2e-3)


def test_a_project_that_has_work_for_half_the_time_can_have_no_more_than_that_and_its_buffer() -> None:
    a, b = Project("A", 90, (ON_CPU,)), Project("B", 10, (ON_CPU,))
    dry = result_of(a, b, gpu=False, events=(HasWork(5 * DAY_SECS, "A", False),))
    # A: 5 days and a buffer of 0.2, of 10: 0.52. (0.9 - 0.52) + (0.48 - 0.1).
    assert least_violation(dry) == pytest.approx(0.76, abs=2e-3)


def test_the_buffer_may_be_full_at_the_start_of_each_spell_without_work() -> None:
    """A has no work in the second quarter of each half day, which is less than its buffer but for 0.05 days."""
    a, b = Project("A", 90, (ON_CPU,)), Project("B", 10, (ON_CPU,))
    quarters = [HasWork(number * DAY_SECS / 4, "A", number % 2 == 0) for number in range(1, 40)]
    often = result_of(a, b, gpu=False, events=tuple(quarters))
    # A can have 5 days and 20 times 0.2 of 10: 0.9, its share.
    assert least_violation(often) == pytest.approx(0, abs=2e-3)
    fewer = result_of(a, b, gpu=False, events=(*quarters[:4], HasWork(1.25 * DAY_SECS, "A", False)))
    # Two such spells, and one from 1.25 days on: 0.75 days with work and 3 times 0.2. (0.9 - 0.135) + (0.865 - 0.1).
    assert least_violation(fewer) == pytest.approx(1.53, abs=2e-3)


def test_who_never_has_work_can_have_none() -> None:
    a, b = Project("A", 90, (ON_CPU,), has_work=False), Project("B", 10, (ON_CPU,))
    assert least_violation(result_of(a, b, gpu=False)) == pytest.approx(1.8, abs=2e-3)
    # From day 8 on it has: 2 of 10 days. (0.9 - 0.2) + (0.8 - 0.1).
    later = result_of(a, b, gpu=False, events=(HasWork(8 * DAY_SECS, "A", True),))
    assert least_violation(later) == pytest.approx(1.4, abs=2e-3)


def test_it_is_never_above_what_a_run_achieved() -> None:
    # A's jobs take half a GPU, B's a whole one: with the GPU always full the work could not be divided so well.
    scenario = read_document((CASES / "half-a-gpu.json").read_bytes()).applied()
    figures = figures_of_merit(run(scenario, Rec(), 5.0, timeline=False))
    assert figures["share_violation_least"] is not None
    assert figures["share_violation"] is not None
    assert figures["share_violation_least"] <= figures["share_violation"] < 0.1


def test_who_has_only_apps_without_weight_never_has_work() -> None:
    a, b = Project("A", 90, (replace(ON_CPU, weight=0),)), Project("B", 10, (ON_CPU,))
    assert least_violation(result_of(a, b, gpu=False)) == pytest.approx(1.8, abs=2e-3)


def at_the_start(project: str, hours: float, done: float = 0.0, **more: Any) -> StartJob:
    """A job for the CPU, or for the GPU, of which that part is done."""
    flops = 2e9 if more.get("app") == "gpu" else 1e9
    flop = hours * 3600 * flops
    state = StartState.BEGUN if done else StartState.NEW
    return StartJob(
        **{
            **{"project": project, "app": "cpu", "size_flop": flop, "estimate_flop": flop, "state": state},
            **{"deadline_secs": 10 * DAY_SECS, "done_fraction": done, **more},
        }
    )


def test_a_project_without_new_jobs_can_have_what_its_jobs_at_the_start_need() -> None:
    a, b = Project("A", 90, (ON_CPU,), has_work=False), Project("B", 10, (ON_CPU,))
    jobs = (at_the_start("A", 12), at_the_start("A", 24, done=0.5))
    scenario = Scenario(Host((Processor(CPU, 1, 1e9),)), (a, b), Preferences(0.1, 0.1), jobs=jobs)
    # A has a day of 10: (0.9 - 0.1) + (0.9 - 0.1).
    assert least_violation(run(scenario, Rec(), 10.0, timeline=False)) == pytest.approx(1.6, abs=2e-3)
    # Jobs that are suspended or finished bring it nothing.
    none = (
        at_the_start("A", 12, state=StartState.SUSPENDED),
        at_the_start("A", 12, state=StartState.FINISHED, done_fraction=1.0),
    )
    scenario = replace(scenario, jobs=none)
    assert least_violation(run(scenario, Rec(), 10.0, timeline=False)) == pytest.approx(1.8, abs=2e-3)


def test_jobs_at_the_start_are_no_more_in_several_parts_of_the_run() -> None:
    a, b = Project("A", 90, (ON_CPU,), no_new_tasks=True), Project("B", 10, (ON_CPU,))
    # B does twice as much from then on; A's 2.4 days stay as much work.
    events = (ChangeProcessor(2 * DAY_SECS, CPU, peak_flops=2e9),)
    scenario = Scenario(
        Host((Processor(CPU, 1, 1e9),)), (a, b), Preferences(1, 1), jobs=(at_the_start("A", 57.6),), events=events
    )
    # 2.4 of 2 + 2 * 8 = 18 days at the first speed: twice (0.9 - 2.4 / 18).
    least = least_violation(run(scenario, Rec(), 10.0, timeline=False))
    assert least == pytest.approx(2 * (0.9 - 2.4 / 18), abs=2e-3)


def test_what_is_left_of_the_jobs_at_the_start_can_run_in_a_later_spell_without_work() -> None:
    a, b = Project("A", 90, (ON_CPU,)), Project("B", 10, (ON_CPU,))
    events = (HasWork(DAY_SECS, "A", False),)
    scenario = Scenario(
        Host((Processor(CPU, 1, 1e9),)), (a, b), Preferences(0.1, 0.1), jobs=(at_the_start("A", 48),), events=events
    )
    # A day with new work, two days of old, and a buffer of 0.2, of 10: twice (0.9 - 0.32).
    assert least_violation(run(scenario, Rec(), 10.0, timeline=False)) == pytest.approx(1.16, abs=2e-3)


def test_nothing_is_avoidable_where_all_only_finish_what_they_have() -> None:
    """As after an upload of a client's files whose projects get no new tasks."""
    projects = tuple(Project(name, 50, (ON_CPU, ON_GPU), no_new_tasks=True) for name in "AB")
    jobs = (at_the_start("A", 20), at_the_start("A", 6, app="gpu"), at_the_start("B", 1), at_the_start("B", 5))
    scenario = Scenario(Host((Processor(CPU, 1, 1e9), GPU)), projects, Preferences(0.1, 0.5), jobs=jobs)
    figures = figures_of_merit(run(scenario, Rec(), 10.0, timeline=False))
    # A: 20 hours at 1 GFLOPS and 6 at 2, B 6 at 1: 32 / 38 and 6 / 38.
    assert figures["share_violation"] == pytest.approx(26 / 38, abs=2e-3)
    assert figures["share_violation_least"] == pytest.approx(26 / 38, abs=1e-5)
    assert figures["share_violation_avoidable"] == pytest.approx(0, abs=1e-5)


def test_a_clients_files_without_new_tasks_show_nothing_as_avoidable() -> None:
    scenario = read_folder(Path(__file__).parents[2] / "data" / "emulator" / "client_at_work")
    projects = tuple(replace(project, no_new_tasks=True) for project in scenario.projects)
    figures = figures_of_merit(run(replace(scenario, projects=projects), Rec(), 3.0, timeline=False))
    assert figures["share_violation"] and figures["share_violation_avoidable"] == pytest.approx(0, abs=0.01)


def test_a_program_that_comes_later_counts_from_then_on() -> None:
    a, b = Project("A", 50, (ON_GPU,)), Project("B", 50, (ON_CPU,))
    result = result_of(a, b, events=(NewApp(8 * DAY_SECS, "B", ON_GPU),))
    # In GFLOPS times days: A at most 20, B at least 10 and at most 10 + 4 = 14 of 30: |16 - 15| and |14 - 15|.
    assert least_violation(result) == pytest.approx(2 / 30, abs=2e-3)


def test_all_figures_of_a_run_have_a_name() -> None:
    figures = figures_of_merit(result_of(Project("A", 50, (ON_GPU,)), Project("B", 50, (ON_CPU,))))
    assert figures["share_violation_least"] == pytest.approx(1 / 3, abs=2e-3)
    assert figures["share_violation"] == pytest.approx(1 / 3, abs=1e-3)
    assert figures["share_violation_avoidable"] == pytest.approx(0, abs=1e-3)


def test_a_problem_that_is_too_large_is_not_calculated(monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(Project("A", 50, (ON_CPU, ON_GPU)), Project("B", 50, (ON_CPU,)))
    monkeypatch.setattr(attainable, "MAX_UNKNOWNS", 2)
    assert figures_of_merit(result)["share_violation_least"] is None


def test_without_any_program_or_time_nothing_can_be_violated() -> None:
    assert least_violation(result_of(Project("A", 1), Project("B", 2))) == 0
    off = Scenario(Host((Processor(CPU, 1, 1e9),), on=Availability(0.0)), (Project("A", 1, (ON_CPU,)),))
    assert least_violation(run(off, Rec(), 1.0)) == 0


def random_scenario(seed: int) -> Scenario:
    draw = random.Random(seed)
    processors = (Processor(CPU, draw.choice((1, 2, 4)), 1e9), GPU)
    projects = []
    events: list[Event] = []
    for number in range(draw.randint(2, 4)):
        apps = draw.choice(((ON_CPU,), (ON_GPU,), (ON_CPU, ON_GPU)))
        name = f"P{number}"
        late = number > 0 and draw.random() < 0.3
        projects.append(Project(name, draw.choice((10, 50, 100)), apps, attached=not late))
        if late:
            events.append(Attach(draw.uniform(1, 15) * DAY_SECS, name))
    host = Host(processors, active=Availability(draw.choice((1.0, 0.6)), 6 * 3600.0))
    return Scenario(host, tuple(projects), Preferences(0.1, 0.1), events=tuple(events))


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 12))])
def test_no_policy_that_keeps_the_processors_busy_is_better_than_the_bound(seed: int) -> None:
    scenario = random_scenario(seed)
    for policy in (Rec(), LongTermDebt(scenario)):
        result = run(scenario, policy, 20.0, timeline=False)
        least = least_violation(result)
        # A policy that leaves processors idle can be nearer to the shares; these leave little.
        assert least is not None and result.figures.share_violation >= least - 2 * result.figures.idle - 1e-6


def test_the_documents_third_example_cannot_be_kept_to_its_shares_before_the_program_comes() -> None:
    result = run(preset("document-late-gpu-app").scenario, Rec(), 100.0, timeline=False)
    figures = figures_of_merit(result)
    assert figures["share_violation"] == pytest.approx(0.34, abs=0.01)
    assert figures["share_violation_avoidable"] == pytest.approx(0, abs=1e-4)


def test_it_is_not_calculated_without_the_time_for_it() -> None:
    result = run(preset("document-late-gpu-app").scenario, Rec(), 20.0, timeline=False)
    assert figures_of_merit(result, secs_left=0.9)["share_violation_least"] is None
    assert figures_of_merit(result, secs_left=60.0)["share_violation_least"] is not None
