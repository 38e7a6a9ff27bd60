"""Try changes that may help: a handful of short runs, of which only good ones become advice.

A change is advice if it clearly improves the figure in question and worsens no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from emulator.advice.findings import Findings, kind_shares
from emulator.engine.scenario import Project, Scenario
from emulator.engine.timeline.results import Result

TRIALS_MAX: Final = 6
TRIAL_DAYS_MAX: Final = 30.0
TRIAL_EVENTS: Final = 30_000  # events of one trial, approximately
_LARGER: Final = ((0.1, 0.5), (0.5, 0.5), (1.0, 1.0), (3.0, 1.0), (7.0, 1.0))
_SMALLER: Final = ((1.0, 1.0), (0.5, 0.5), (0.1, 0.5), (0.1, 0.1), (0.01, 0.01))
_SHARE_FACTOR_MAX: Final = 4.0
# An improvement must be at least this much, and at least that fraction of the former value; nothing else may get worse
# by more.
_CLEAR: Final = 0.005
_CLEAR_PART: Final = 0.2
_WORSE: Final = 0.005
_MORE_CONTACTS: Final = 0.25


class Setting(StrEnum):
    """The kind of setting that a trial changes."""

    BUFFER = "buffer"
    MAX_CONCURRENT = "max_concurrent"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A change of one setting. Buffers are (minimum, additional) in days; other values have one number."""

    setting: Setting
    before: tuple[float, ...]
    after: tuple[float, ...]
    project: str = ""


@dataclass(frozen=True, slots=True)
class Measures:
    """The compared figures; less is better. Fractions: of speed, of jobs, of the work of a kind of processor that
    projects lack; contacts per job.
    """

    idle: float
    late: float
    short: float
    rpcs_per_job: float


FIGURES: Final = ("late", "short", "idle")
"""The figures that findings are about, in order of importance."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A change and its result."""

    change: SettingChange
    measures: Measures


@dataclass(frozen=True, slots=True)
class Advice:
    """A change that improves a figure."""

    figure: str
    trial: Trial


@dataclass(frozen=True, slots=True)
class TrialResults:
    """All trials of a run: they and `before` cover the same `days`."""

    days: float
    before: Measures
    trials: tuple[Trial, ...]
    advice: tuple[Advice, ...]


def measure(scenario: Scenario, result: Result, shares: Sequence[float]) -> Measures:
    """Computes the measures of a run of this scenario, with the shares (fractions of all work) that its owner wants."""
    jobs = sum(row.jobs for row in result.projects) + len(result.overdue)
    late = sum(row.late for row in result.projects) + len(result.overdue)
    lacking = [max((part.lacks for part in mine), default=0.0) for mine in kind_shares(scenario, result, shares)]
    return Measures(
        idle=result.figures.idle,
        late=late / jobs if jobs else 0.0,
        short=sum(lacking),
        rpcs_per_job=result.figures.rpcs_per_job,
    )


def candidates(scenario: Scenario, findings: Findings, result: Result) -> list[tuple[SettingChange, Scenario]]:
    """The changes worth trying for these findings, at most TRIALS_MAX: those for different figures in turn."""
    groups = []
    if findings.nlate:
        groups.append(list(_buffers(scenario, larger=False))[:2])
    if findings.short:
        groups.append([*_shares(scenario, findings), *_limits(scenario, result)])
    if findings.idle:
        groups.append([*_without_limits(scenario), *list(_buffers(scenario, larger=True))[:3]])
    changes: list[tuple[SettingChange, Scenario]] = []
    for place in range(max(map(len, groups), default=0)):
        changes += [group[place] for group in groups if place < len(group)]
    return changes[:TRIALS_MAX]


def _buffers(scenario: Scenario, *, larger: bool) -> Iterable[tuple[SettingChange, Scenario]]:
    old = scenario.preferences
    before = (old.work_buf_min_days, old.work_buf_additional_days)
    for after in _LARGER if larger else _SMALLER:
        if sum(after) > sum(before) + 1e-9 if larger else sum(after) < sum(before) - 1e-9:
            preferences = replace(old, work_buf_min_days=after[0], work_buf_additional_days=after[1])
            yield SettingChange(Setting.BUFFER, before, after), replace(scenario, preferences=preferences)


def _shares(scenario: Scenario, findings: Findings) -> Iterable[tuple[SettingChange, Scenario]]:
    """Larger shares for projects that got some work, but too little."""
    got_something = {short.project: short for short in reversed(findings.short) if short.got > 0}
    for short in list(reversed(got_something.values()))[:2]:
        project = scenario.project(short.project)
        share = round(project.share * min(short.share / short.got, _SHARE_FACTOR_MAX), 2)
        change = SettingChange(Setting.SHARE, (project.share,), (share,), project.name)
        yield change, _with(scenario, replace(project, share=share))


def _limits(scenario: Scenario, result: Result) -> Iterable[tuple[SettingChange, Scenario]]:
    """A limit on the concurrent jobs of the project furthest above its share."""
    cpus = scenario.preferences.usable_cpus(scenario.host.processors[0].instances)
    most = max(result.projects, key=lambda row: row.got_fraction - row.share)
    limit = max(1, round(most.share * cpus))
    project = scenario.project(most.name)
    if limit < cpus and not project.max_concurrent and most.got_fraction > most.share:
        change = SettingChange(Setting.MAX_CONCURRENT, (0,), (limit,), project.name)
        yield change, _with(scenario, replace(project, max_concurrent=limit))


def _without_limits(scenario: Scenario) -> Iterable[tuple[SettingChange, Scenario]]:
    limited = [project for project in scenario.projects if project.max_concurrent]
    for project in limited[:2]:
        change = SettingChange(Setting.MAX_CONCURRENT, (project.max_concurrent,), (0,), project.name)
        yield change, _with(scenario, replace(project, max_concurrent=0))


def _with(scenario: Scenario, changed: Project) -> Scenario:
    projects = tuple(changed if project.name == changed.name else project for project in scenario.projects)
    return replace(scenario, projects=projects)


def trial_days(days: float, events: int) -> float:
    """How long a trial runs, after a run of this many days had this many events."""
    return min(days, TRIAL_DAYS_MAX, days * TRIAL_EVENTS / max(events, 1))


def try_all(
    scenario: Scenario, findings: Findings, result: Result, days: float, run: Callable[[Scenario, float], Result]
) -> TrialResults:
    """Runs each candidate over this many days, and the unchanged scenario, too, if the result covers other days."""
    tried = candidates(scenario, findings, result)
    shares = [row.share for row in result.projects]
    is_same = days == result.days or not tried
    before = measure(scenario, result if is_same else run(scenario, days), shares)
    trials = tuple(Trial(change, measure(changed, run(changed, days), shares)) for change, changed in tried)
    return TrialResults(days if tried else result.days, before, trials, advise(before, trials, _figures(findings)))


def _figures(findings: Findings) -> list[str]:
    shares = {"late": findings.nlate > 0, "short": bool(findings.short), "idle": bool(findings.idle)}
    return [figure for figure in FIGURES if shares[figure]]


def advise(before: Measures, trials: Sequence[Trial], figures: Sequence[str]) -> tuple[Advice, ...]:
    """The trial that improves each of the figures most, if there is one that worsens no other."""
    advice = []
    for figure in figures:
        good = [trial for trial in trials if _improves(before, trial.measures, figure)]
        if good:
            advice.append(Advice(figure, min(good, key=lambda trial: getattr(trial.measures, figure))))
    return tuple(advice)


def _improves(before: Measures, after: Measures, figure: str) -> bool:
    was, now = getattr(before, figure), getattr(after, figure)
    if was - now < max(_CLEAR, _CLEAR_PART * was):
        return False
    others = [other for other in FIGURES if other != figure]
    is_spoiled = any(getattr(after, other) > getattr(before, other) + _WORSE for other in others)
    return not is_spoiled and after.rpcs_per_job <= before.rpcs_per_job + _MORE_CONTACTS
