"""The whole scenario, checked as it is made."""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.engine.scenario.checks import MAX_EVENTS, MAX_JOBS, MAX_PROJECTS, ScenarioError, check_count, check_number
from emulator.engine.scenario.events import Event, check_event
from emulator.engine.scenario.host import Host, check_host
from emulator.engine.scenario.limits import WEEK_SECS
from emulator.engine.scenario.preferences import Preferences, check_preferences
from emulator.engine.scenario.projects import Project, StartJob, check_job, check_project
from emulator.engine.scenario.unused import Unused


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a run starts from. Raises ScenarioError when it cannot be run.

    `week_secs` is the local time at the start, in seconds since Sunday 0:00.
    """

    host: Host
    projects: tuple[Project, ...]
    preferences: Preferences = Preferences()
    jobs: tuple[StartJob, ...] = ()
    events: tuple[Event, ...] = ()
    name: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)  # omissions and assumptions of a reader of files
    week_secs: float = 0.0
    unused: tuple[Unused, ...] = field(default=(), compare=False)  # what it found in the files and did not use

    def __post_init__(self) -> None:
        check_host(self.host)
        check_preferences(self.preferences)
        check_number("week_secs", self.week_secs, 0, WEEK_SECS)
        check_count("projects", self.projects, 1, MAX_PROJECTS)
        kinds = {processor.kind for processor in self.host.processors}
        for project in self.projects:
            check_project(project)
        names = [project.name for project in self.projects]
        if len(set(names)) < len(names):
            raise ScenarioError("projects", "two projects have the same name")
        if all(project.share == 0 for project in self.projects):
            raise ScenarioError("share", "at least one project needs a share above 0")
        check_count("jobs", self.jobs, 0, MAX_JOBS)
        for job in self.jobs:
            check_job(job, self.projects, kinds)
        check_count("events", self.events, 0, MAX_EVENTS)
        for event in self.events:
            check_event(event, set(names))

    def project(self, name: str) -> Project:
        """The project of that name; KeyError if there is none."""
        for project in self.projects:
            if project.name == name:
                return project
        raise KeyError(name)
