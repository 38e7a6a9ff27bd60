"""What happens during a run: projects come and go, servers fail, jobs run dry, the owner changes something."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Attach,
    ChangeBuffer,
    ChangeShare,
    Detach,
    Event,
    HasWork,
    Host,
    NewApp,
    NoNewTasks,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    ServerUp,
    Suspend,
    Version,
)
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import Result

HOUR_FLOP = 3600e9
APP = App("x", (Version(1e9),), Normal(HOUR_FLOP, 0.1 * HOUR_FLOP), Normal(HOUR_FLOP), 10 * DAY_SECS)
A, B = Project("A", 50, (APP,)), Project("B", 50, (APP,))
HOST = Host((Processor(CPU, 2, 1e9),))


def happen(*events: Event, projects: tuple[Project, ...] = (A, B), days: float = 20.0) -> Result:
    return run(Scenario(HOST, projects, Preferences(0.1, 0.2), events=events), Rec(), days)


def cpu_days(result: Result, project: int, first_day: float, last_day: float) -> float:
    """CPU-days a project had between two days."""
    assert result.timeline is not None
    bins = result.timeline.bins
    first, last = (round(day * DAY_SECS / bins.width_secs) for day in (first_day, last_day))
    return float(bins.busy[0, project, first:last].sum()) / DAY_SECS


def test_an_attached_project_gets_work_from_then_on() -> None:
    result = happen(Attach(10 * DAY_SECS, "B"), projects=(A, replace(B, attached=False)))
    assert cpu_days(result, 1, 0, 10) == 0
    # B's REC is 0, so it has nearly all until it has caught up with what A's decays to.
    assert cpu_days(result, 1, 10, 20) > 10
    assert result.figures.idle < 0.001


def test_a_project_that_is_left_gets_nothing_more() -> None:
    result = happen(Detach(10 * DAY_SECS, "B"))
    assert cpu_days(result, 1, 0, 10) == pytest.approx(10, rel=0.05)
    assert cpu_days(result, 1, 10.01, 20) == 0
    assert cpu_days(result, 0, 10.01, 20) == pytest.approx(2 * 9.99, rel=0.01)
    # B was entitled to half of the first half: 0.5 * 10/20.
    assert [project.share for project in result.projects] == [0.75, 0.25]


def test_a_project_without_jobs_is_asked_ever_less_often() -> None:
    result = happen(HasWork(0.0, "B", False))
    assert cpu_days(result, 1, 0, 20) == 0
    assert result.figures.idle < 0.001
    waits = [
        amount
        for reason, amount in zip(result.decisions.reason, result.decisions.amount, strict=True)
        if reason == Reason.SERVER_DRY
    ]
    # 10 minutes, doubled up to a day, each times 0.5 to 1.5.
    for number, wait in enumerate(waits):
        interval = min(600.0 * 2**number, DAY_SECS)
        assert 0.5 * interval <= wait <= 1.5 * interval
    assert len(waits) > 15


def test_jobs_that_come_again_end_the_back_off() -> None:
    result = happen(HasWork(0.0, "B", False), HasWork(5 * DAY_SECS, "B", True))
    assert cpu_days(result, 1, 0, 5) == 0
    assert cpu_days(result, 1, 7, 20) > 12


def test_a_server_that_is_down_is_tried_again() -> None:
    result = happen(ServerUp(0.0, "B", False), ServerUp(3 * DAY_SECS, "B", True))
    assert cpu_days(result, 1, 0, 3) == 0
    # Tried at least every 4 hours.
    assert cpu_days(result, 1, 3.5, 20) > 14
    assert Reason.SERVER_DOWN in result.decisions.reason


def test_a_changed_share_counts_at_once() -> None:
    result = happen(ChangeShare(0.0, "A", 150.0), days=100.0)
    assert [project.share for project in result.projects] == [0.75, 0.25]
    assert result.projects[0].got_fraction == pytest.approx(0.75, abs=0.01)


def test_a_suspended_project_neither_runs_nor_is_asked() -> None:
    result = happen(Suspend(5 * DAY_SECS, "B", True), Suspend(10 * DAY_SECS, "B", False))
    assert cpu_days(result, 1, 5.01, 10) == 0
    assert cpu_days(result, 1, 10, 20) > 9
    assert result.figures.idle < 0.001


def test_no_new_tasks_lets_what_is_there_end() -> None:
    result = happen(NoNewTasks(5 * DAY_SECS, "B", True))
    assert cpu_days(result, 1, 6, 20) == 0
    assert result.projects[1].jobs == result.projects[1].sent


def test_an_application_for_a_gpu_uses_it_from_then_on() -> None:
    host = Host((Processor(CPU, 1, 1e9), Processor("NVIDIA", 1, 10e9, 0.2)))
    gpu = replace(APP, name="g", versions=(Version(2e9, cpus=0.01, gpu="NVIDIA", gpus=1.0),))
    scenario = Scenario(host, (A, B), events=(NewApp(5 * DAY_SECS, "B", gpu),))
    result = run(scenario, Rec(), 10.0)
    assert result.timeline is not None
    busy = result.timeline.bins.busy[1, 1]
    half = len(busy) // 2
    assert busy[:half].sum() == 0
    assert busy[half:].sum() == pytest.approx(5 * DAY_SECS, rel=0.01)


def test_a_larger_buffer_is_filled() -> None:
    result = happen(ChangeBuffer(5 * DAY_SECS, 1.0, 1.0))
    assert result.timeline is not None
    levels = result.timeline.levels
    before = [b for t, b in zip(levels.at_secs, levels.buffer_secs[0], strict=True) if DAY_SECS < t < 5 * DAY_SECS]
    after = [b for t, b in zip(levels.at_secs, levels.buffer_secs[0], strict=True) if t > 6 * DAY_SECS]
    # 0.3 days of 2 CPUs and at most a job's length beyond it for each; then one to two days.
    assert max(before) < 2 * (0.3 * DAY_SECS + 4500)
    assert min(after) > 2 * 0.95 * DAY_SECS


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("event.project", {"events": (Attach(0.0, "nobody"),)}),
        ("event.at_secs", {"events": (Attach(float("nan"), "A"),)}),
        ("share", {"projects": (replace(A, share=0.0),)}),
        ("A.share", {"projects": (replace(A, share=float("inf")),)}),
        ("work_buf_min_days", {"preferences": Preferences(-1.0)}),
        ("CPU.peak_flops", {"host": Host((Processor(CPU, 1, 1e304),))}),
        ("projects", {"projects": ()}),
        ("projects", {"projects": (A, A)}),
        ("A.x.size.mean", {"projects": (replace(A, apps=(replace(APP, size=Normal(float("nan"))),)),)}),
    ],
)
def test_an_impossible_scenario_is_refused_by_name(field: str, change: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError) as refused:
        replace(Scenario(HOST, (A, B)), **change)
    assert refused.value.field == field


@pytest.mark.parametrize("days", [0.0, -1.0, float("nan"), float("inf"), 1e304])
def test_an_impossible_time_is_refused(days: float) -> None:
    with pytest.raises(ScenarioError, match="days"):
        run(Scenario(HOST, (A, B)), Rec(), days)
