"""The input of an emulation: a computer, its projects and their applications, preferences, and events.

Everything here is frozen data. Times are seconds from the start of the run, work is FLOP, speeds are FLOP per
second ("flops"), shares are the numbers volunteers type. `Scenario` is checked as it is made, so whatever
holds one holds a sound one.
"""

from emulator.engine.scenario.checks import (
    CPU,
    DAY_SECS,
    GPU_EFFICIENCY,
    MAX_APPS,
    MAX_EVENTS,
    MAX_FLOP,
    MAX_FLOPS,
    MAX_INSTANCES,
    MAX_JOBS,
    MAX_KINDS,
    MAX_NAME_CHARS,
    MAX_PROJECTS,
    MAX_SECS,
    MAX_SHARE,
    MAX_VERSIONS,
    MIN_JOB_FLOP,
    ScenarioError,
)
from emulator.engine.scenario.events import (
    Attach,
    ChangeBuffer,
    ChangePreferences,
    ChangeProcessor,
    ChangeShare,
    Detach,
    Event,
    HasWork,
    HostEvent,
    NewApp,
    NoNewTasks,
    ProjectEvent,
    ServerUp,
    Suspend,
)
from emulator.engine.scenario.host import Availability, Host, Processor
from emulator.engine.scenario.preferences import Preferences
from emulator.engine.scenario.projects import App, Downtime, Normal, Project, Standing, StartJob, Version
from emulator.engine.scenario.whole import Scenario

__all__ = [
    "CPU",
    "DAY_SECS",
    "GPU_EFFICIENCY",
    "MAX_APPS",
    "MAX_EVENTS",
    "MAX_FLOP",
    "MAX_FLOPS",
    "MAX_INSTANCES",
    "MAX_JOBS",
    "MAX_KINDS",
    "MAX_NAME_CHARS",
    "MAX_PROJECTS",
    "MAX_SECS",
    "MAX_SHARE",
    "MAX_VERSIONS",
    "MIN_JOB_FLOP",
    "App",
    "Attach",
    "Availability",
    "ChangeBuffer",
    "ChangePreferences",
    "ChangeProcessor",
    "ChangeShare",
    "Detach",
    "Downtime",
    "Event",
    "HasWork",
    "Host",
    "HostEvent",
    "NewApp",
    "NoNewTasks",
    "Normal",
    "Preferences",
    "Processor",
    "Project",
    "ProjectEvent",
    "Scenario",
    "ScenarioError",
    "ServerUp",
    "Standing",
    "StartJob",
    "Suspend",
    "Version",
]
