"""Changes during a run: events at a time, in seconds from the start."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from emulator.engine.scenario.checks import (
    CPU,
    MAX_FLOPS,
    MAX_INSTANCES,
    Between,
    Instances,
    Name,
    ScenarioError,
    Secs,
    Share,
    check_limits,
)
from emulator.engine.scenario.limits import Hours, check_hours
from emulator.engine.scenario.preferences import BufferDays, CpusPercent, CpuUsagePercent, PeriodSecs, RamFraction
from emulator.engine.scenario.projects import App, check_app


@dataclass(frozen=True, slots=True)
class Attach:
    """The project is attached (it must be in the scenario, with `attached=False`)."""

    at_secs: Secs
    project: Name


@dataclass(frozen=True, slots=True)
class Detach:
    """The project is left; its jobs are dropped and count as neither met nor late."""

    at_secs: Secs
    project: Name


@dataclass(frozen=True, slots=True)
class NewApp:
    """The project gets an application; if it has one of that name, that one gets its versions in addition."""

    at_secs: Secs
    project: Name
    app: App


@dataclass(frozen=True, slots=True)
class HasWork:
    """The project's server runs out of jobs, or has some again."""

    at_secs: Secs
    project: Name
    has_work: bool


@dataclass(frozen=True, slots=True)
class ServerUp:
    """The project's server goes down or comes back, whatever its random availability says."""

    at_secs: Secs
    project: Name
    up: bool


@dataclass(frozen=True, slots=True)
class ChangeShare:
    """The owner changes a project's share."""

    at_secs: Secs
    project: Name
    share: Share


@dataclass(frozen=True, slots=True)
class Suspend:
    """The owner suspends a project, or resumes it."""

    at_secs: Secs
    project: Name
    suspended: bool


@dataclass(frozen=True, slots=True)
class NoNewTasks:
    """The owner sets or clears "no new tasks"."""

    at_secs: Secs
    project: Name
    no_new_tasks: bool


@dataclass(frozen=True, slots=True)
class ChangeBuffer:
    """The owner changes the work buffer."""

    at_secs: Secs
    work_buf_min_days: BufferDays
    work_buf_additional_days: BufferDays


@dataclass(frozen=True, slots=True)
class ChangePreferences:
    """The owner changes preferences: those that are not None. Their names are those of `Preferences`."""

    at_secs: Secs
    work_buf_min_days: BufferDays | None = None
    work_buf_additional_days: BufferDays | None = None
    period_secs: PeriodSecs | None = None
    max_cpus_percent: CpusPercent | None = None
    report_at_once: bool | None = None
    max_ncpus: Instances | None = None
    cpu_usage_percent: CpuUsagePercent | None = None
    compute_hours: Hours | None = None
    network_hours: Hours | None = None
    run_if_user_active: bool | None = None
    run_gpu_if_user_active: bool | None = None
    run_on_batteries: bool | None = None
    ram_busy_fraction: RamFraction | None = None
    ram_idle_fraction: RamFraction | None = None

    def changes(self) -> dict[str, Any]:
        """The preferences that change, by name."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self) if field.name != "at_secs")
        return {name: value for name, value in named if value is not None}


@dataclass(frozen=True, slots=True)
class ChangeProcessor:
    """The computer's hardware changes: how many processors of a kind it has, or how fast each is. None: as before.

    A kind of GPU that it does not have yet needs both numbers; `instances` 0 removes one. A faster processor works
    faster: the speeds of its versions, of running jobs too, grow with its peak. Jobs that no longer fit are given up.
    """

    at_secs: Secs
    kind: Name
    instances: Annotated[int, Between(0, MAX_INSTANCES)] | None = None
    peak_flops: Annotated[float, Between(1, MAX_FLOPS)] | None = None


ProjectEvent = Attach | Detach | NewApp | HasWork | ServerUp | ChangeShare | Suspend | NoNewTasks
HostEvent = ChangeBuffer | ChangePreferences | ChangeProcessor
Event = ProjectEvent | HostEvent


def check_event(event: Event, names: set[str]) -> None:
    check_limits("event.", event)
    if isinstance(event, ChangePreferences):
        if not event.changes():
            raise ScenarioError("event", "event_changes_nothing")
        for name in ("compute_hours", "network_hours"):
            if (hours := getattr(event, name)) is not None:
                check_hours(f"event.{name}", hours)
        return
    if isinstance(event, ChangeProcessor):
        _check_processor(event)
        return
    if isinstance(event, ChangeBuffer):
        return
    if event.project not in names:
        raise ScenarioError("event.project", "no_such_project", name=event.project)
    if isinstance(event, NewApp):
        check_app(event.project, event.app)


def _check_processor(event: ChangeProcessor) -> None:
    if event.instances is None and event.peak_flops is None:
        raise ScenarioError("event", "hardware_changes_nothing")
    if event.instances == 0 and event.kind == CPU:
        raise ScenarioError("event.instances", "no_cpu_left")
