"""The whole scenario, checked when it is created."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from emulator.engine.scenario.checks import (
    CPU,
    GPU_EFFICIENCY,
    MAX_EVENTS,
    MAX_JOBS,
    MAX_KINDS,
    MAX_PROJECTS,
    Between,
    Count,
    Label,
    ScenarioError,
    check_limits,
)
from emulator.engine.scenario.events import ChangePreferences, ChangeProcessor, Event, check_event
from emulator.engine.scenario.host import Host, Processor, check_host
from emulator.engine.scenario.limits import WEEK_SECS
from emulator.engine.scenario.preferences import Preferences, check_preferences
from emulator.engine.scenario.projects import Project, StartJob, check_job, check_project
from emulator.engine.scenario.unused import Unused
from portal.languages.messages import Message

MAX_NOTES: Final = 10_000
MAX_NOTE_CHARS: Final = 1000
MIN_JOB_SECS: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a run starts from. Raises ScenarioError when it cannot be run.

    `week_secs` is the local time at the start, in seconds since Sunday 0:00.
    """

    host: Host
    projects: Annotated[tuple[Project, ...], Count(1, MAX_PROJECTS)]
    preferences: Preferences = Preferences()
    jobs: Annotated[tuple[StartJob, ...], Count(0, MAX_JOBS)] = ()
    events: Annotated[tuple[Event, ...], Count(0, MAX_EVENTS)] = ()
    name: Label = ""
    # Omissions and assumptions of a reader of files.
    notes: Annotated[tuple[Message, ...], Count(0, MAX_NOTES)] = field(default=(), compare=False)
    week_secs: Annotated[float, Between(0, WEEK_SECS)] = 0.0
    # Content of the files that it did not use.
    unused: Annotated[tuple[Unused, ...], Count(0, MAX_NOTES)] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_limits("", self)
        check_host(self.host)
        check_preferences(self.preferences)
        kinds = {processor.kind for processor in self.host.processors}
        for project in self.projects:
            check_project(project)
        names = [project.name for project in self.projects]
        if len(set(names)) < len(names):
            raise ScenarioError("projects", "project_name_twice")
        if all(project.share == 0 for project in self.projects):
            raise ScenarioError("share", "no_share")
        for job in self.jobs:
            check_job(job, self.projects, kinds)
        project_names = set(names)
        for event in self.events:
            check_event(event, project_names)
        for unused in self.unused:
            check_limits("unused.", unused)
        self._check_speeds()

    def project(self, name: str) -> Project:
        """The project of that name; KeyError if there is none."""
        for project in self.projects:
            if project.name == name:
                return project
        raise KeyError(name)

    def all_processors(self) -> tuple[Processor, ...]:
        """The processors at the start, and then those of kinds that come later, as they first come.

        Raises ScenarioError for an event that changes a kind which does not exist.
        """
        processors = {processor.kind: processor for processor in self.host.processors}
        for event in sorted(self.events, key=lambda event: event.at_secs):
            if not isinstance(event, ChangeProcessor) or event.kind in processors:
                continue
            if not event.instances or event.peak_flops is None:
                raise ScenarioError("event.kind", "processor_needs_speed", kind=event.kind)
            processors[event.kind] = Processor(event.kind, event.instances, event.peak_flops, GPU_EFFICIENCY)
        if len(processors) > MAX_KINDS:
            raise ScenarioError("events", "wrong_number_of", number=len(processors), low=1, high=MAX_KINDS)
        return tuple(processors.values())

    def most_instances(self) -> list[int]:
        """Per kind of `all_processors`, the most processors at any time."""
        most = {processor.kind: processor.instances for processor in self.all_processors()}
        for event in self.events:
            if isinstance(event, ChangeProcessor) and event.instances:
                most[event.kind] = max(most[event.kind], event.instances)
        return list(most.values())

    def most_usable(self) -> list[int]:
        """The same, but only of those CPUs that preferences let jobs use."""
        count, preferences = self.host.processors[0].instances, self.preferences
        most = preferences.usable_cpus(count)
        due = [event for event in self.events if isinstance(event, ChangePreferences | ChangeProcessor)]
        # In the order of a run: of events at the same time, the last one first.
        for event in reversed(sorted(due, key=lambda event: event.at_secs, reverse=True)):
            if isinstance(event, ChangePreferences):
                preferences = replace(preferences, **event.changes())
            elif event.kind == CPU:
                count = event.instances or count
            most = max(most, preferences.usable_cpus(count))
        return [most, *self.most_instances()[1:]]

    def _check_speeds(self) -> None:
        """Checks that no job is so short that time stands still."""
        first = {processor.kind: processor.peak_flops for processor in self.all_processors()}
        fastest = dict(first)
        for event in self.events:
            if isinstance(event, ChangeProcessor) and event.peak_flops:
                fastest[event.kind] = max(fastest[event.kind], event.peak_flops)
        for app in (app for project in self.projects for app in project.apps):
            for version in app.versions:
                times = fastest.get(version.kind, 1.0) / first.get(version.kind, 1.0)
                if times > 1 and app.size.mean / version.flops / times < MIN_JOB_SECS:
                    raise ScenarioError("event.peak_flops", "tasks_too_short")
