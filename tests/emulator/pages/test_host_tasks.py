"""The tasks that a client listed become jobs of a scenario."""

from __future__ import annotations

import datetime as dt
import math

import pytest

from accounting.engine.client_tasks import TaskState
from emulator.engine.scenario import StartState
from emulator.pages.drafts import ProjectFacts, draft
from emulator.pages.host_tasks import ListedTask, habits, start_jobs
from tests.support.emulator_experiments import example

NOW = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


def listed(state: TaskState = TaskState.RUNNING, **known: float) -> ListedTask:
    """A task of project A, due in three days, of which a client said only this."""
    said = [known.get(name) for name in ("fraction_done", "elapsed_secs", "remaining_secs")]
    return ListedTask("A", "wu_1_0", state, said[0], said[1], said[2], NOW + 3 * DAY)


@pytest.mark.parametrize(
    ("task", "state", "run_secs", "done"),
    [
        (listed(fraction_done=0.5, elapsed_secs=3600, remaining_secs=7200), StartState.RUNNING, 10_800, 1 / 3),
        (listed(fraction_done=0.25, elapsed_secs=3600), StartState.RUNNING, 14_400, 0.25),
        (listed(TaskState.PAUSED, remaining_secs=7200), StartState.BEGUN, 7200, 0.0),
        (listed(TaskState.READY, remaining_secs=7200), StartState.NEW, 7200, 0.0),
        (listed(TaskState.DOWNLOADING), StartState.NEW, 3600, 0.0),  # A's usual task takes an hour
        (listed(TaskState.UPLOADING, elapsed_secs=60, fraction_done=1.0), StartState.FINISHED, 60, 1.0),
    ],
)
def test_a_listed_task_becomes_a_job(task: ListedTask, state: StartState, run_secs: float, done: float) -> None:
    (job,) = start_jobs([task], example(), NOW)
    assert (job.name, job.state, job.deadline_secs) == ("wu_1_0", state, 3 * 86400)
    assert job.size_flop == pytest.approx(run_secs * 4e9)  # at 4 GFLOPS
    assert math.isclose(job.done_fraction, done)


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.ABORTED])
def test_tasks_that_came_to_nothing_are_left_out(state: TaskState) -> None:
    assert start_jobs([listed(state)], example(), NOW) == ()


def test_a_project_without_a_program_for_cpus_has_gpu_tasks() -> None:
    processors = list(example().host.processors)
    gpu = type(processors[0])("NVIDIA", 1, 1e12, 0.2)
    scenario = draft([*processors, gpu], [ProjectFacts("A", 100, {"NVIDIA": 1})], example().preferences)
    (job,) = start_jobs([listed(remaining_secs=7200.0)], scenario, NOW)
    assert job.app == "NVIDIA jobs" and job.size_flop == pytest.approx(7200 * 2e11)


def test_the_next_tasks_are_taken_to_be_like_the_present_ones() -> None:
    tasks = [listed(remaining_secs=7200.0), listed(remaining_secs=14_400.0)]
    assert (habits(tasks, "A", NOW).run_hours, habits(tasks, "A", NOW).limit_days) == (3.0, 3.0)
    assert (habits(tasks, "B", NOW).run_hours, habits(tasks, "B", NOW).limit_days) == (None, None)
    # One that is due soon does not make the time limit of later ones shorter than a day.
    assert habits(tasks, "A", NOW + 2.9 * DAY).limit_days == 1.0
