"""Find what went wrong in a run: late jobs, projects below their shares, idle processors.

The bounds are ours: what an owner would notice, not a rule of the emulator document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from emulator.engine.scenario import DAY_SECS, App, HasWork, NewApp, Project, Scenario, StartState
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import ProjectResult, Result

NAMED_MAX: Final = 10
IDLE_MIN: Final = 0.01  # of the time in which a kind of processor was able to compute
SHORT_MIN: Final = 0.02  # of the work of a kind of processor
SHORT_PART_MIN: Final = 0.1  # of the project's share


class Cause(StrEnum):
    """Why a project got too little, or a processor idled, as far as the run shows it."""

    SUSPENDED = "suspended"  # only for a processor: a suspended project is entitled to nothing
    NO_NEW_TASKS = "no new tasks"
    HELD = "held"  # a suspended job prevents requests to its project
    NO_PROGRAM = "no program"  # only for a processor: a project has no share of one that it cannot use
    MEMORY = "memory"
    MAX_CONCURRENT = "max concurrent"
    DEADLINES = "deadlines"  # the server does not send jobs that would be late
    SERVER_DOWN = "server down"
    NO_WORK = "no work"
    NEVER_WORK = "never work"
    OFFLINE = "offline"  # the network is unavailable or disallowed for part of the time
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class LateJob:
    """A job that finished after its deadline, or is unfinished past its deadline. `name` is the client's."""

    project: str
    job: int
    name: str
    late_secs: float
    is_finished: bool


@dataclass(frozen=True, slots=True)
class ShortProject:
    """A project that got clearly less of a kind of processor than its share; fractions of that kind's work. `kind` is
    empty for a project without programs, whose fractions are of all work.
    """

    project: str
    kind: str
    share: float
    got: float
    cause: Cause


@dataclass(frozen=True, slots=True)
class KindShare:
    """A project's share of the work of a kind of processor, among those with a program for it, and the work it got.

    `lacks`: the missing fraction of that work, at most the amount missing of all work. So a project that got its whole
    share on other processors lacks nothing.
    """

    kind: str
    share: float
    got: float
    lacks: float

    @property
    def is_short(self) -> bool:
        """Whether the project got clearly less than its share."""
        return self.lacks > max(SHORT_MIN, SHORT_PART_MIN * self.share)


@dataclass(frozen=True, slots=True)
class IdleKind:
    """A kind of processor that idled for part of the instance-seconds in which it was able to compute."""

    kind: str
    idle_secs: float
    able_secs: float
    cause: Cause

    @property
    def fraction(self) -> float:
        """The idle part of the time."""
        return self.idle_secs / self.able_secs


@dataclass(frozen=True, slots=True)
class Findings:
    """All findings. `late` has only the latest ones, of `nlate` of `njobs`."""

    late: tuple[LateJob, ...]
    nlate: int
    njobs: int
    short: tuple[ShortProject, ...]
    idle: tuple[IdleKind, ...]


def find(scenario: Scenario, result: Result) -> Findings:
    """The findings of a run whose timeline was recorded."""
    late = _late_jobs(result)
    return Findings(
        late=tuple(late[:NAMED_MAX]),
        nlate=sum(row.late for row in result.projects),
        njobs=sum(row.jobs for row in result.projects),
        short=tuple(_shorts(scenario, result)),
        idle=tuple(_idle(scenario, result)),
    )


def kind_shares(scenario: Scenario, result: Result, shares: Sequence[float]) -> list[list[KindShare]]:
    """Each project's shares by kind of processor that add up to the fraction of all work in `shares`."""
    rows = result.projects
    kinds = [processor.kind for processor in scenario.all_processors()]
    flops = [processor.counted_flops for processor in scenario.all_processors()]
    used = [[secs * speed for secs, speed in zip(row.instance_secs, flops, strict=True)] for row in rows]
    whole = sum(map(sum, used))
    kind_shares: list[list[KindShare]] = [[] for _row in rows]
    for kind in kinds:
        entitled = [number for number, row in enumerate(rows) if kind in _kinds_of(scenario.project(row.name).apps)]
        place = kinds.index(kind)
        total = sum(used[number][place] for number in entitled)
        total_share = sum(shares[number] for number in entitled)
        for number in entitled:
            share = shares[number] / total_share if total_share else 0.0
            got = used[number][place] / total if total else 0.0
            overall = (shares[number] - rows[number].got_fraction) * (whole / total if total else 1.0)
            kind_shares[number].append(KindShare(kind, share, got, max(0.0, min(share - got, overall))))
    for number, row in enumerate(rows):
        if not scenario.project(row.name).apps:
            lacks = max(0.0, shares[number] - row.got_fraction)
            kind_shares[number].append(KindShare("", shares[number], row.got_fraction, lacks))
    return kind_shares


def _late_jobs(result: Result) -> list[LateJob]:
    """Known jobs of the owner's first, then the latest."""
    late_jobs = [
        LateJob(result.projects[project].name, job, result.names.get(job, ""), late_secs, is_finished=False)
        for project, job, late_secs in result.overdue
    ]
    if result.timeline is not None:
        misses = result.timeline.misses
        unfinished = {job for _, job, _ in result.overdue}
        late_jobs += [
            LateJob(result.projects[project].name, job, result.names.get(job, ""), late_secs, is_finished=True)
            for project, job, late_secs in zip(misses.project, misses.job, misses.late_secs, strict=True)
            if job not in unfinished
        ]
    return sorted(late_jobs, key=lambda late: (not late.name, -late.late_secs, late.job))


def _shorts(scenario: Scenario, result: Result) -> Iterator[ShortProject]:
    shares = [row.share for row in result.projects]
    for number, mine in enumerate(kind_shares(scenario, result, shares)):
        short = [kind_share for kind_share in mine if kind_share.is_short]
        if short:
            row = result.projects[number]
            cause = _why_short(scenario, result, number, row)
            yield from (ShortProject(row.name, part.kind, part.share, part.got, cause) for part in short)


def _why_short(scenario: Scenario, result: Result, number: int, row: ProjectResult) -> Cause:
    project = scenario.project(row.name)
    reasons = _reasons(result, number)
    causes = (
        (Cause.NO_NEW_TASKS, project.no_new_tasks),
        (Cause.HELD, _is_held(scenario, project)),
        (Cause.NEVER_WORK, _never_has_work(scenario, project, result.days)),
        (Cause.MEMORY, _lacks_memory(scenario, project) or reasons[Reason.NO_MEMORY] > 0),
        (Cause.SERVER_DOWN, reasons[Reason.SERVER_DOWN] > row.rpcs / 4),
        (Cause.DEADLINES, reasons[Reason.SERVER_DEADLINE] > row.rpcs / 4),
        (Cause.NO_WORK, not project.has_work or reasons[Reason.SERVER_DRY] > row.rpcs / 2),
        (Cause.MAX_CONCURRENT, bool(project.max_concurrent) or any(app.max_concurrent for app in project.apps)),
    )
    return next((cause for cause, holds in causes if holds), Cause.UNKNOWN)


def _reasons(result: Result, project: int) -> Sequence[int]:
    """Counts the decisions about the project by reason."""
    reasons = np.asarray(result.decisions.reason, dtype=np.int64)
    mine = np.asarray(result.decisions.project) == project
    counts: list[int] = np.bincount(reasons[mine], minlength=128).tolist()
    return counts


def _kinds_of(apps: Sequence[App]) -> set[str]:
    return {version.kind for app in apps for version in app.versions}


def _lacks_memory(scenario: Scenario, project: Project) -> bool:
    """Whether none of its jobs ever fits into memory."""
    preferences, ram_bytes = scenario.preferences, scenario.host.ram_bytes
    most = ram_bytes * max(preferences.ram_busy_fraction, preferences.ram_idle_fraction)
    return bool(ram_bytes and project.apps) and all(app.working_set_bytes > most for app in project.apps)


def _idle(scenario: Scenario, result: Result) -> list[IdleKind]:
    assert result.timeline is not None
    bins = result.timeline.bins
    idle_times = []
    for number, kind in enumerate(result.timeline.kinds):
        able = float(bins.instances[number]) * result.timeline.duration_secs - float(bins.off[number].sum())
        idle = able - float(bins.busy[number].sum())
        if able > 0 and idle > IDLE_MIN * able:
            idle_times.append(IdleKind(kind, idle, able, _why_idle(scenario, result, kind)))
    return idle_times


def _why_idle(scenario: Scenario, result: Result, kind: str) -> Cause:
    suppliers = [
        (number, project) for number, project in enumerate(scenario.projects) if kind in _kinds_of(project.apps)
    ]
    if not suppliers:
        return Cause.NO_PROGRAM
    counts = np.sum([_reasons(result, number) for number, _ in suppliers], axis=0)
    contacts = sum(result.projects[number].rpcs for number, _ in suppliers)
    causes = (
        (Cause.SUSPENDED, all(project.suspended for _, project in suppliers)),
        (Cause.NO_NEW_TASKS, all(project.suspended or project.no_new_tasks for _, project in suppliers)),
        (Cause.HELD, all(_is_not_asked(scenario, project) for _, project in suppliers)),
        (
            Cause.NEVER_WORK,
            all(
                _is_not_asked(scenario, supplier) or _never_has_work(scenario, supplier, result.days)
                for _, supplier in suppliers
            ),
        ),
        (
            Cause.MEMORY,
            counts[Reason.NO_MEMORY] > 0 or all(_lacks_memory(scenario, supplier) for _, supplier in suppliers),
        ),
        (Cause.MAX_CONCURRENT, all(_is_limited(project) for _, project in suppliers)),
        (Cause.DEADLINES, counts[Reason.SERVER_DEADLINE] > contacts / 4),
        (Cause.OFFLINE, not scenario.preferences.network_hours.is_always or scenario.host.connected.fraction < 1),
        (Cause.SERVER_DOWN, counts[Reason.SERVER_DOWN] > contacts / 4),
        (Cause.NO_WORK, counts[Reason.SERVER_DRY] > contacts / 2),
    )
    return next((cause for cause, holds in causes if holds), Cause.UNKNOWN)


def _is_not_asked(scenario: Scenario, project: Project) -> bool:
    return project.suspended or project.no_new_tasks or _is_held(scenario, project)


def _is_held(scenario: Scenario, project: Project) -> bool:
    return any(job.project == project.name and job.state == StartState.SUSPENDED for job in scenario.jobs)


def _never_has_work(scenario: Scenario, project: Project, days: float) -> bool:
    """Whether its server has no jobs in the whole run."""
    events = [event for event in scenario.events if event.at_secs < days * DAY_SECS]
    changes = [event for event in events if isinstance(event, HasWork) and event.project == project.name]
    apps = [event.app for event in events if isinstance(event, NewApp) and event.project == project.name]
    if not project.has_work and not any(event.has_work for event in changes):
        return True
    return bool(project.apps) and all(app.weight == 0 for app in (*project.apps, *apps))


def _is_limited(project: Project) -> bool:
    return bool(project.max_concurrent) or all(app.max_concurrent for app in project.apps)
