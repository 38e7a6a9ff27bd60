"""The input of an emulation: a computer, its projects and their applications, preferences, and events.

Everything here is frozen data. Times are seconds from the start of the run, work is FLOP, speeds are FLOP per
second ("flops"), shares are the numbers volunteers type. `Scenario` is checked as it is made, so whatever
holds one holds a sound one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

CPU: Final = "CPU"
DAY_SECS: Final = 86400.0
GPU_EFFICIENCY: Final = 0.2  # the part of a GPU's peak that counts as work done: BOINC's own assumption

MAX_PROJECTS: Final = 1000
MAX_APPS: Final = 200  # per project
MAX_VERSIONS: Final = 50  # per application
MAX_KINDS: Final = 16
MAX_INSTANCES: Final = 4096  # of one kind of processor
MAX_JOBS: Final = 20_000  # present at the start
MAX_EVENTS: Final = 10_000
MAX_NAME_CHARS: Final = 255
MAX_FLOPS: Final = 1e18
MAX_FLOP: Final = 1e24
MAX_SECS: Final = 2000 * 366 * DAY_SECS
MAX_SHARE: Final = 1e9
MIN_JOB_FLOP: Final = 1.0  # a drawn size or estimate below this, or negative, becomes this


class ScenarioError(ValueError):
    """A scenario that cannot be run: `field` names the invalid value, the message also says what is allowed."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


@dataclass(frozen=True, slots=True)
class Availability:
    """A two-state process: up times are exponential with mean `mean_up_secs`, down times so that the long-run
    part of the time it is up is `fraction`. It starts up with that probability. 1 is always up, 0 never."""

    fraction: float = 1.0
    mean_up_secs: float = 3600.0


@dataclass(frozen=True, slots=True)
class Processor:
    """One kind of processor. The first kind of a host is always `CPU`.

    `efficiency` is the part of the peak that counts as work done: BOINC assumes 1 for CPUs and 0.2 for GPUs.
    Credit, recent credit and all figures of merit count `peak_flops * efficiency` per instance.
    """

    kind: str
    instances: int
    peak_flops: float
    efficiency: float = 1.0

    @property
    def counted_flops(self) -> float:
        """The counted FLOPS of one instance in accounts and figures of merit."""
        return self.peak_flops * self.efficiency


@dataclass(frozen=True, slots=True)
class Host:
    """A computer. `on` rules everything; `connected` only RPCs; `active` all computing; `gpu_active` that of GPUs."""

    processors: tuple[Processor, ...]
    on: Availability = Availability()
    connected: Availability = Availability()
    active: Availability = Availability()
    gpu_active: Availability = Availability()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution of FLOP; negative draws are cut off. With `std_dev` 0 it is a constant."""

    mean: float
    std_dev: float = 0.0


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an application: the devices that one of its jobs occupies, and its speed there.

    `cpus` is the number of CPUs it uses. A GPU version names its `gpu` kind and uses `gpus` instances of it (may
    be a fraction). `flops` is the speed of the job as a whole: size / flops = run time.
    """

    flops: float
    cpus: float = 1.0
    gpu: str = ""
    gpus: float = 0.0

    @property
    def kind(self) -> str:
        """The kind of processor it is for: the GPU's if it uses one."""
        return self.gpu or CPU


@dataclass(frozen=True, slots=True)
class App:
    """An application: its jobs' real sizes, the server's estimate of them, and their time limit.

    Size and estimate are drawn independently. `weight` is the relative number of jobs of this application among
    the project's; at most `max_concurrent` of its jobs run at once (0: no limit).
    """

    name: str
    versions: tuple[Version, ...]
    size: Normal
    estimate: Normal
    latency_bound_secs: float
    weight: float = 1.0
    max_concurrent: int = 0
    non_cpu_intensive: bool = False  # such an application takes no part in scheduling and is left out


@dataclass(frozen=True, slots=True)
class Standing:
    """A project's accounts at the start; each policy reads its own.

    `rec` in credit per day; `ltd_secs` the long-term debt per kind of processor in instance-seconds, as pairs;
    `debt_secs` the debt of the 2005 policy in CPU-seconds.
    """

    rec: float = 0.0
    ltd_secs: tuple[tuple[str, float], ...] = ()
    debt_secs: float = 0.0


@dataclass(frozen=True, slots=True)
class Project:
    """A project, its share and how its server behaves.

    `attached` is False for one that an `Attach` event brings in. A server that `has_work` always has jobs of all
    its applications. `workload_check`: the server simulates all the client's jobs before it sends one, instead
    of the simple check (see docs/explanation/emulator.md). `request_delay_secs` is the least time between two RPCs.
    """

    name: str
    share: float
    apps: tuple[App, ...] = ()
    available: Availability = Availability()
    standing: Standing = Standing()
    attached: bool = True
    has_work: bool = True
    suspended: bool = False
    no_new_tasks: bool = False
    workload_check: bool = False
    uses_dcf: bool = False
    request_delay_secs: float = 0.0
    max_concurrent: int = 0


@dataclass(frozen=True, slots=True)
class StartJob:
    """A job that is there at the start, untouched; `version` counts from 0 in its application's versions."""

    project: str
    app: str
    size_flop: float
    estimate_flop: float
    deadline_secs: float
    version: int = 0


@dataclass(frozen=True, slots=True)
class Preferences:
    """The owner's preferences. `period_secs` is the scheduling period (time slice)."""

    work_buf_min_days: float = 0.1
    work_buf_additional_days: float = 0.5
    period_secs: float = 3600.0
    max_cpus_percent: float = 100.0
    report_at_once: bool = False


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


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that a run starts from. Raises ScenarioError when it cannot be run."""

    host: Host
    projects: tuple[Project, ...]
    preferences: Preferences = Preferences()
    jobs: tuple[StartJob, ...] = ()
    events: tuple[Event, ...] = ()
    name: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)  # omissions and assumptions of a reader of files

    def __post_init__(self) -> None:
        _check_host(self.host)
        _check_preferences(self.preferences)
        _count("projects", self.projects, 1, MAX_PROJECTS)
        kinds = {processor.kind for processor in self.host.processors}
        for project in self.projects:
            _check_project(project)
        names = [project.name for project in self.projects]
        if len(set(names)) < len(names):
            raise ScenarioError("projects", "two projects have the same name")
        if all(project.share == 0 for project in self.projects):
            raise ScenarioError("share", "at least one project needs a share above 0")
        _count("jobs", self.jobs, 0, MAX_JOBS)
        for job in self.jobs:
            _check_job(job, self.projects, kinds)
        _count("events", self.events, 0, MAX_EVENTS)
        for event in self.events:
            _check_event(event, set(names))

    def project(self, name: str) -> Project:
        """The project of that name; KeyError if there is none."""
        for project in self.projects:
            if project.name == name:
                return project
        raise KeyError(name)


def _number(name: str, value: float, least: float, most: float) -> None:
    """Raises ScenarioError unless it is a finite number in the range, ends included."""
    if not (isinstance(value, int | float) and math.isfinite(value) and least <= value <= most):
        raise ScenarioError(name, f"{value!r} is not a number from {least:g} to {most:g}")


def _count(name: str, items: tuple[object, ...], least: int, most: int) -> None:
    if not least <= len(items) <= most:
        raise ScenarioError(name, f"there are {len(items)}; the limit is {least} to {most}")


def _name(name: str, value: str) -> None:
    if not 0 < len(value) <= MAX_NAME_CHARS:
        raise ScenarioError(name, f"a name must have 1 to {MAX_NAME_CHARS} characters")


def _check_availability(name: str, process: Availability) -> None:
    _number(f"{name}.fraction", process.fraction, 0, 1)
    _number(f"{name}.mean_up_secs", process.mean_up_secs, 1, MAX_SECS)


def _check_host(host: Host) -> None:
    _count("processors", host.processors, 1, MAX_KINDS)
    if host.processors[0].kind != CPU:
        raise ScenarioError("processors", f"the first must be {CPU}")
    kinds = [processor.kind for processor in host.processors]
    if len(set(kinds)) < len(kinds):
        raise ScenarioError("processors", "two entries have the same type; use one entry with more instances")
    for processor in host.processors:
        _name("processor.kind", processor.kind)
        _number(f"{processor.kind}.instances", processor.instances, 1, MAX_INSTANCES)
        _number(f"{processor.kind}.peak_flops", processor.peak_flops, 1, MAX_FLOPS)
        _number(f"{processor.kind}.efficiency", processor.efficiency, 1e-6, 1)
    for name in ("on", "connected", "active", "gpu_active"):
        _check_availability(name, getattr(host, name))


def _check_preferences(preferences: Preferences) -> None:
    _number("work_buf_min_days", preferences.work_buf_min_days, 0, 1000)
    _number("work_buf_additional_days", preferences.work_buf_additional_days, 0, 1000)
    _number("period_secs", preferences.period_secs, 60, 100 * DAY_SECS)
    _number("max_cpus_percent", preferences.max_cpus_percent, 0.01, 100)


def _check_project(project: Project) -> None:
    _name("project.name", project.name)
    at = project.name
    _number(f"{at}.share", project.share, 0, MAX_SHARE)
    _number(f"{at}.request_delay_secs", project.request_delay_secs, 0, MAX_SECS)
    _number(f"{at}.max_concurrent", project.max_concurrent, 0, MAX_INSTANCES)
    _check_availability(f"{at}.available", project.available)
    _number(f"{at}.rec", project.standing.rec, 0, 1e15)
    _number(f"{at}.debt_secs", project.standing.debt_secs, -MAX_SECS, MAX_SECS)
    for kind, debt_secs in project.standing.ltd_secs:
        _number(f"{at}.ltd_secs[{kind}]", debt_secs, -MAX_SECS, MAX_SECS)
    _count(f"{at}.apps", project.apps, 0, MAX_APPS)
    for app in project.apps:
        _check_app(at, app)


def _check_app(project: str, app: App) -> None:
    _name(f"{project}.app.name", app.name)
    at = f"{project}.{app.name}"
    _number(f"{at}.latency_bound_secs", app.latency_bound_secs, 1, MAX_SECS)
    _number(f"{at}.weight", app.weight, 0, 1e9)
    _number(f"{at}.max_concurrent", app.max_concurrent, 0, MAX_INSTANCES)
    for name, normal in (("size", app.size), ("estimate", app.estimate)):
        _number(f"{at}.{name}.mean", normal.mean, MIN_JOB_FLOP, MAX_FLOP)
        _number(f"{at}.{name}.std_dev", normal.std_dev, 0, MAX_FLOP)
    _count(f"{at}.versions", app.versions, 0, MAX_VERSIONS)
    for version in app.versions:
        _number(f"{at}.flops", version.flops, 1, MAX_FLOPS)
        _number(f"{at}.cpus", version.cpus, 0, MAX_INSTANCES)
        _number(f"{at}.gpus", version.gpus, 0, MAX_INSTANCES)
        if bool(version.gpu) != (version.gpus > 0) or (not version.gpu and version.cpus <= 0):
            raise ScenarioError(f"{at}.versions", "a version must use some CPU, or name a GPU and use some of it")
        if 0 < app.size.mean / version.flops < 1e-3:
            raise ScenarioError(f"{at}.flops", "its tasks would take less than a millisecond")


def _check_job(job: StartJob, projects: tuple[Project, ...], kinds: set[str]) -> None:
    at = f"task of {job.project}"
    found = [app for project in projects if project.name == job.project for app in project.apps if app.name == job.app]
    if not found:
        raise ScenarioError(at, f"the scenario has no application {job.app!r} of that project")
    if not 0 <= job.version < len(found[0].versions) or found[0].versions[job.version].kind not in kinds:
        raise ScenarioError(at, "its version cannot run on this computer")
    _number(f"{at}.size_flop", job.size_flop, MIN_JOB_FLOP, MAX_FLOP)
    _number(f"{at}.estimate_flop", job.estimate_flop, MIN_JOB_FLOP, MAX_FLOP)
    _number(f"{at}.deadline_secs", job.deadline_secs, -MAX_SECS, MAX_SECS)


def _check_event(event: Event, names: set[str]) -> None:
    _number("event.at_secs", event.at_secs, 0, MAX_SECS)
    if isinstance(event, ChangeBuffer):
        _number("event.work_buf_min_days", event.work_buf_min_days, 0, 1000)
        _number("event.work_buf_additional_days", event.work_buf_additional_days, 0, 1000)
        return
    if event.project not in names:
        raise ScenarioError("event.project", f"the scenario has no project {event.project!r}")
    if isinstance(event, ChangeShare):
        _number("event.share", event.share, 0, MAX_SHARE)
    if isinstance(event, NewApp):
        _check_app(event.project, event.app)
