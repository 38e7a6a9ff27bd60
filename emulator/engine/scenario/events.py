"""What changes during a run: events at a time, in seconds from the start."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.engine.scenario.checks import MAX_SECS, MAX_SHARE, ScenarioError, check_number
from emulator.engine.scenario.projects import App, check_app


@dataclass(frozen=True, slots=True)
class Attach:
    """From now on the project is attached (it must be in the scenario, with `attached=False`)."""

    at_secs: float
    project: str


@dataclass(frozen=True, slots=True)
class Detach:
    """The project is left; its jobs are dropped and count as neither met nor late."""

    at_secs: float
    project: str


@dataclass(frozen=True, slots=True)
class NewApp:
    """The project gets an application; if it has one of that name, that one gets its versions in addition."""

    at_secs: float
    project: str
    app: App


@dataclass(frozen=True, slots=True)
class HasWork:
    """The project's server runs out of jobs, or has some again."""

    at_secs: float
    project: str
    has_work: bool


@dataclass(frozen=True, slots=True)
class ServerUp:
    """The project's server goes down or comes back, whatever its random availability says."""

    at_secs: float
    project: str
    up: bool


@dataclass(frozen=True, slots=True)
class ChangeShare:
    """The owner changes a project's share."""

    at_secs: float
    project: str
    share: float


@dataclass(frozen=True, slots=True)
class Suspend:
    """The owner suspends a project, or resumes it."""

    at_secs: float
    project: str
    suspended: bool


@dataclass(frozen=True, slots=True)
class NoNewTasks:
    """The owner sets or clears "no new tasks"."""

    at_secs: float
    project: str
    no_new_tasks: bool


@dataclass(frozen=True, slots=True)
class ChangeBuffer:
    """The owner changes the work buffer."""

    at_secs: float
    work_buf_min_days: float
    work_buf_additional_days: float


ProjectEvent = Attach | Detach | NewApp | HasWork | ServerUp | ChangeShare | Suspend | NoNewTasks
Event = ProjectEvent | ChangeBuffer


def check_event(event: Event, names: set[str]) -> None:
    check_number("event.at_secs", event.at_secs, 0, MAX_SECS)
    if isinstance(event, ChangeBuffer):
        check_number("event.work_buf_min_days", event.work_buf_min_days, 0, 1000)
        check_number("event.work_buf_additional_days", event.work_buf_additional_days, 0, 1000)
        return
    if event.project not in names:
        raise ScenarioError("event.project", f"the scenario has no project {event.project!r}")
    if isinstance(event, ChangeShare):
        check_number("event.share", event.share, 0, MAX_SHARE)
    if isinstance(event, NewApp):
        check_app(event.project, event.app)
