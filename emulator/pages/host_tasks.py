"""Convert the tasks that a computer's client listed to jobs of a scenario: progress, run time, deadline.

A client reports neither the application of a task nor its processor, so these are assumed. Pure.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from accounting.engine.client_tasks import TaskState
from emulator.engine.scenario import CPU, MAX_NAME_CHARS, Scenario, StartJob, StartState

_STATES: Final = {
    TaskState.RUNNING: StartState.RUNNING,
    TaskState.PAUSED: StartState.BEGUN,
    TaskState.READY: StartState.NEW,
    TaskState.DOWNLOADING: StartState.NEW,
    TaskState.UPLOADING: StartState.FINISHED,
    TaskState.FINISHED: StartState.FINISHED,
}
LIMIT_DAYS: Final = 7.0
MIN_LIMIT_DAYS: Final = 1.0
MIN_SECS: Final = 1.0
MAX_DONE: Final = 0.999


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A task as its client reports it; None: not reported."""

    project: str
    name: str
    state: TaskState
    fraction_done: float | None
    elapsed_secs: float | None
    remaining_secs: float | None
    deadline: dt.datetime | None

    @property
    def run_secs(self) -> float | None:
        """Its whole run time: the time passed plus the time remaining, or an extrapolation from the fraction done."""
        elapsed, remaining, done = self.elapsed_secs or 0.0, self.remaining_secs, self.fraction_done
        if remaining:
            return max(MIN_SECS, elapsed + remaining)
        return max(MIN_SECS, elapsed / done) if elapsed and done else None


@dataclass(frozen=True, slots=True)
class Habits:
    """Predictions for a project's next tasks, from its listed ones; None: nothing."""

    run_hours: float | None = None
    limit_days: float | None = None


def habits(tasks: Sequence[ListedTask], project: str, at: dt.datetime) -> Habits:
    """Return the mean run time of a project's tasks, and the longest time until one is due."""
    run_secs = [task.run_secs for task in tasks if task.project == project]
    secs_given = [secs for secs in run_secs if secs is not None]
    due = [(task.deadline - at).total_seconds() / 86400 for task in tasks if task.project == project and task.deadline]
    return Habits(fmean(secs_given) / 3600 if secs_given else None, max([MIN_LIMIT_DAYS, *due]) if due else None)


def start_jobs(tasks: Sequence[ListedTask], scenario: Scenario, at: dt.datetime) -> tuple[StartJob, ...]:
    """Return the jobs for these tasks. If the project has programs for CPUs they are CPU tasks, else of its first
    kind.
    """
    projects = {project.name: project for project in scenario.projects}
    jobs = []
    for task in tasks:
        project, state = projects.get(task.project), _STATES.get(task.state)
        if project is None or state is None:
            continue
        app = next((app for app in project.apps if app.versions[0].kind == CPU), project.apps[0])
        flops = app.versions[0].flops
        size_flop = task.run_secs * flops if task.run_secs else app.size.mean
        due_secs = (task.deadline - at).total_seconds() if task.deadline else LIMIT_DAYS * 86400
        jobs.append(
            StartJob(
                project.name,
                app.name,
                size_flop,
                size_flop,
                due_secs,
                state=state,
                done_fraction=_done(task, state),
                name=task.name[:MAX_NAME_CHARS],
            )
        )
    return tuple(jobs)


def _done(task: ListedTask, state: StartState) -> float:
    if state is StartState.NEW:
        return 0.0
    if state is StartState.FINISHED:
        return 1.0
    if task.elapsed_secs and task.run_secs:
        # A fraction of the run time, which may differ from the fraction of the work that a client sees.
        return min(task.elapsed_secs / task.run_secs, MAX_DONE)
    return min(task.fraction_done or 0.0, MAX_DONE)
