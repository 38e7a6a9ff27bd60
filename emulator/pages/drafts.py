"""Make scenarios from a form or from a volunteer's computer, and change them. Pure: facts in, scenarios out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Availability,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    Version,
)
from portal.languages.messages import Message

ALWAYS: Final = Availability()


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """A project in people's terms: jobs by their run time on this computer.

    ``job_hours``: run time by kind of processor; a kind that is not named has no application.
    """

    name: str
    share: float
    job_hours: Mapping[str, float]
    deadline_days: float = 7.0
    job_spread: float = 0.0


def draft(
    processors: Sequence[Processor],
    projects: Sequence[ProjectFacts],
    preferences: Preferences,
    *,
    name: str = "",
    on: Availability = ALWAYS,
    active: Availability = ALWAYS,
    notes: Sequence[Message] = (),
) -> Scenario:
    """Return the scenario of a computer and of its projects' jobs. Raises ScenarioError."""
    host = Host(tuple(processors), on=on, active=active, name=name)
    by_kind = {processor.kind: processor for processor in processors}
    rows = tuple(_project(facts, by_kind) for facts in projects)
    return Scenario(host=host, projects=rows, preferences=preferences, name=name, notes=tuple(notes))


def _project(facts: ProjectFacts, processors: Mapping[str, Processor]) -> Project:
    apps = []
    for kind, hours in facts.job_hours.items():
        processor = processors.get(kind)
        if processor is None:
            raise ScenarioError(f"{facts.name}.job_hours", "no_such_processor", kind=kind)
        if not hours > 0:
            raise ScenarioError(f"{facts.name}.job_hours", "no_run_time", hours=hours)
        flops = processor.counted_flops
        mean = hours * 3600 * flops
        jobs = Normal(mean, mean * facts.job_spread)
        version = Version(flops) if kind == CPU else Version(flops, cpus=0.1, gpu=kind, gpus=1)
        apps.append(App(f"{kind} jobs", (version,), jobs, jobs, facts.deadline_days * DAY_SECS))
    return Project(facts.name, facts.share, tuple(apps))


@dataclass(frozen=True, slots=True)
class ScenarioChange:
    """The values of a scenario that may be changed before it runs. Lists have one entry per processor or project."""

    instances: Sequence[int]
    peak_flops: Sequence[float]
    shares: Sequence[float]
    work_buf_min_days: float
    work_buf_additional_days: float


def changed(scenario: Scenario, change: ScenarioChange) -> Scenario:
    """Return the scenario with the change made. Raises ScenarioError.

    A processor that is made faster works faster: its versions' speeds grow with it.
    """
    processors = tuple(
        replace(processor, instances=instances, peak_flops=peak_flops)
        for processor, instances, peak_flops in zip(
            scenario.host.processors, change.instances, change.peak_flops, strict=True
        )
    )
    for number, peak_flops in enumerate(change.peak_flops):
        if not 1 <= peak_flops <= 1e18:
            raise ScenarioError(
                f"{processors[number].kind}.peak_flops", "not_within", value=peak_flops, low=1, high=1e18
            )
    faster = {
        new.kind: new.peak_flops / old.peak_flops
        for new, old in zip(processors, scenario.host.processors, strict=True)
        if new.peak_flops != old.peak_flops
    }
    projects = tuple(
        replace(project, share=share, apps=tuple(_sped_up(app, faster) for app in project.apps))
        for project, share in zip(scenario.projects, change.shares, strict=True)
    )
    preferences = replace(
        scenario.preferences,
        work_buf_min_days=change.work_buf_min_days,
        work_buf_additional_days=change.work_buf_additional_days,
    )
    return replace(
        scenario, host=replace(scenario.host, processors=processors), projects=projects, preferences=preferences
    )


def _sped_up(app: App, faster: Mapping[str, float]) -> App:
    return replace(
        app,
        versions=tuple(
            replace(version, flops=version.flops * faster.get(version.kind, 1.0)) for version in app.versions
        ),
    )
