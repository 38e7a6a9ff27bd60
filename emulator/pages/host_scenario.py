"""The scenario of one of a volunteer's computers: hardware, projects, shares, preferences and tasks as last known."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import Any, Final

from accounting.computers.reads import ProjectLine, read_host_page
from accounting.engine.choice.facts import CPU as CPU_TYPE
from accounting.models import Project as AttachedProject
from accounting.preferences.save import EVERYWHERE, Saved, read_saved
from accounting.running_tasks.reads import TaskLine, read_host_tasks
from emulator.engine.scenario import (
    CPU,
    GPU_EFFICIENCY,
    MAX_INSTANCES,
    Availability,
    DayHours,
    Hours,
    Preferences,
    Processor,
    Scenario,
    ScenarioError,
)
from emulator.engine.scenario import Host as Machine
from emulator.files.owner import NOTHING_EXCLUSIVE, time_of_week, with_use, without_hours
from emulator.pages.drafts import ProjectFacts, draft
from emulator.pages.host_tasks import LIMIT_DAYS, Habits, ListedTask, habits, start_jobs
from portal.languages.messages import Message
from portal.models import Host, User

UNKNOWN_CPU_FLOPS: Final = 4.3e9
UNKNOWN_GPU_FLOPS: Final = 1e12
CPU_JOB_HOURS: Final = 2.0
GPU_JOB_HOURS: Final = 0.5
PERIODS_SECS: Final = 6 * 3600.0


def scenario_of(user: User, host: Host, now: dt.datetime) -> Scenario:
    """Build the scenario for the computer, without its name, as it may be shared; its notes list the assumptions.

    Raises ScenarioError for a computer that has not described itself or has no project.
    """
    if not host.ncpus:
        raise ScenarioError("computer", "computer_without_hardware", computer=host.name)
    notes: list[Message] = []
    processors = _processors(host, notes)
    page = read_host_page(user, host, now)
    lines = [line for line in page.lines if line.share]
    if not lines:
        raise ScenarioError("projects", "computer_without_project", computer=host.name)
    listed = read_host_tasks(host, now)
    at = listed.reported_at if listed.lines and listed.reported_at else now
    tasks = [_task(line) for line in listed.lines]
    preferences = _preferences(user, host)
    scenario = draft(
        processors,
        [_facts(line, processors, habits(tasks, line.project.name, at)) for line in lines],
        preferences,
    )
    _note_run_times(tasks, lines, processors, notes)
    jobs = start_jobs(tasks, scenario, at)
    if jobs:
        notes.append(Message("tasks_go_on", tasks=len(jobs)))
    projects = tuple(
        replace(project, suspended=line.wish.suspended, no_new_tasks=line.wish.no_new_work)
        for project, line in zip(scenario.projects, lines, strict=True)
    )
    return replace(
        scenario,
        host=_with_owner(scenario.host, host, preferences, _numbers(page.contact.get("time_stats")), notes),
        projects=projects,
        jobs=jobs,
        notes=tuple(notes),
        week_secs=time_of_week(at.timestamp(), host.timezone_secs or 0),
    )


def _task(line: TaskLine) -> ListedTask:
    return ListedTask(
        line.project_name,
        line.name,
        line.state,
        line.fraction_done,
        line.elapsed_secs,
        line.remaining_secs,
        line.deadline,
    )


def _facts(line: ProjectLine, processors: list[Processor], habits: Habits) -> ProjectFacts:
    """Return the project and the properties of its tasks; shares count up to 100."""
    kinds = [processor.kind for processor in processors]
    hours = _job_hours(line.project, [kind for kind in kinds if kind not in line.wish.no_rsc] or kinds)
    if habits.run_hours is not None:
        # Unless the client names their processors, listed tasks count as those of the first kind, which is the CPU if
        # possible.
        hours[next(iter(hours))] = habits.run_hours
    return ProjectFacts(line.project.name, round(100 * (line.share or 0), 4), hours, habits.limit_days or LIMIT_DAYS)


def _note_run_times(
    tasks: list[ListedTask], lines: list[ProjectLine], processors: list[Processor], notes: list[Message]
) -> None:
    with_run_times = {task.project for task in tasks if task.run_secs is not None}
    has_gpus = len(processors) > 1
    if with_run_times:
        notes.append(Message("tasks_as_listed", projects=sorted(with_run_times)))
    if with_run_times and (has_gpus or len(with_run_times) < len(lines)):
        notes.append(Message("assumed_other_run_times", cpu_hours=CPU_JOB_HOURS, gpu_hours=GPU_JOB_HOURS))
    elif has_gpus:
        notes.append(Message("assumed_gpu_run_times", cpu_hours=CPU_JOB_HOURS, gpu_hours=GPU_JOB_HOURS))
    elif not with_run_times:
        notes.append(Message("assumed_run_times", cpu_hours=CPU_JOB_HOURS))


def _with_owner(
    machine: Machine, host: Host, preferences: Preferences, stats: dict[str, float], notes: list[Message]
) -> Machine:
    """Return the emulated computer with its memory, and with its availability as measured, or else as assumed."""
    machine = replace(
        machine,
        ram_bytes=float(host.m_nbytes or 0),
        on=_availability(stats.get("on_frac")),
        connected=_availability(stats.get("connected_frac")),
        active=_availability(stats.get("active_frac")),
        gpu_active=_availability(stats.get("gpu_active_frac")),
    )
    if "active_frac" in stats:
        return without_hours(machine, preferences, notes.append)
    notes.append(Message("assumed_always_on"))
    return with_use(machine, preferences, NOTHING_EXCLUSIVE, notes.append)


def _processors(host: Host, notes: list[Message]) -> list[Processor]:
    flops = host.p_fpops
    if not flops or flops == 1e9:
        notes.append(Message("assumed_speed", gflops=UNKNOWN_CPU_FLOPS / 1e9))
        flops = UNKNOWN_CPU_FLOPS
    processors = [Processor(CPU, min(host.ncpus, MAX_INSTANCES), flops)]
    for coproc in host.coprocs:
        kind, count = str(coproc.get("type") or ""), int(coproc.get("count") or 0)
        if kind and count > 0 and kind not in [processor.kind for processor in processors]:
            peak = float(coproc.get("peak_flops") or 0) or UNKNOWN_GPU_FLOPS
            processors.append(Processor(kind, min(count, MAX_INSTANCES), peak, GPU_EFFICIENCY))
    return processors


def _job_hours(project: AttachedProject, kinds: list[str]) -> dict[str, float]:
    """Return job hours by kind; a project that does not list its processor types is assumed to have programs for
    all.
    """
    types = {version.processor_type for version in project.versions.all()} or set(kinds) | {CPU_TYPE}
    hours = {kind: CPU_JOB_HOURS if kind == CPU else GPU_JOB_HOURS for kind in kinds if kind in types}
    return hours or {CPU: CPU_JOB_HOURS}


def _preferences(user: User, host: Host) -> Preferences:
    """Return those that the client gets from here, by the computer's place; else the client's defaults."""
    saved = read_saved(user)
    preferences = saved.get(host.venue) or saved.get(EVERYWHERE)
    if preferences is None:
        return Preferences()
    values = preferences.values
    return Preferences(
        work_buf_min_days=values["work_buf_min_days"],
        work_buf_additional_days=values["work_buf_additional_days"],
        period_secs=max(60.0, 60 * values["cpu_scheduling_period_minutes"]),
        max_cpus_percent=values["max_ncpus_pct"],
        cpu_usage_percent=values["cpu_usage_limit"],
        compute_hours=_hours(preferences, "start_hour", "end_hour"),
        network_hours=_hours(preferences, "net_start_hour", "net_end_hour"),
        run_if_user_active=bool(values["run_if_user_active"]),
        run_gpu_if_user_active=bool(values["run_gpu_if_user_active"]),
        run_on_batteries=bool(values["run_on_batteries"]),
        ram_busy_fraction=values["ram_max_used_busy_pct"] / 100,
        ram_idle_fraction=values["ram_max_used_idle_pct"] / 100,
    )


def _hours(saved: Saved, start: str, end: str) -> Hours:
    days = [DayHours(day, own[start], own[end]) for day, own in sorted(saved.days.items()) if start in own]
    return Hours(saved.values[start], saved.values[end], tuple(days))


def _numbers(values: Any) -> dict[str, float]:
    if not isinstance(values, dict):
        return {}
    return {
        str(name): float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def _availability(fraction: float | None) -> Availability:
    if fraction is None or not 0 < fraction < 1:
        return Availability()
    return Availability(fraction, PERIODS_SECS)
