"""The projects of a scenario: their applications, their servers, and the jobs present at the start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from emulator.engine.scenario.checks import (
    CPU,
    MAX_APPS,
    MAX_FAILURES,
    MAX_FLOP,
    MAX_FLOPS,
    MAX_INSTANCES,
    MAX_KINDS,
    MAX_RAM_BYTES,
    MAX_SECS,
    MAX_SHARE,
    MAX_VERSIONS,
    MIN_JOB_FLOP,
    ScenarioError,
    check_count,
    check_name,
    check_number,
)
from emulator.engine.scenario.host import Availability, check_availability


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
    the project's; at most `max_concurrent` of its jobs run at once (0: no limit). A running job takes
    `working_set_bytes` of RAM (0: not known, and not counted).
    """

    name: str
    versions: tuple[Version, ...]
    size: Normal
    estimate: Normal
    latency_bound_secs: float
    weight: float = 1.0
    max_concurrent: int = 0
    non_cpu_intensive: bool = False  # such an application takes no part in scheduling and is left out
    working_set_bytes: float = 0.0


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
class Backoffs:
    """What keeps the client from contacting a project at the start, or makes it do so. Seconds from the start.

    `allowed_secs`: no RPC before. `next_rpc_secs`: the server asked to be contacted then (0: it did not).
    `failures`: RPCs that failed in a row. `kinds`: per kind of processor (its name, until when it is not asked for,
    the present interval, which doubles each time).
    """

    allowed_secs: float = 0.0
    next_rpc_secs: float = 0.0
    failures: int = 0
    kinds: tuple[tuple[str, float, float], ...] = ()


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
    backoffs: Backoffs = Backoffs()
    not_asked: tuple[str, ...] = ()  # kinds of processor for which the project is never asked


class StartState(StrEnum):
    """What a job that is there at the start is doing."""

    NEW = "new"  # it has not run
    BEGUN = "begun"  # it has run, and was preempted
    RUNNING = "running"
    SUSPENDED = "suspended"  # by the owner: it does not run, and its project is asked for nothing
    FINISHED = "finished"  # it waits to be reported


@dataclass(frozen=True, slots=True)
class StartJob:
    """A job that is there at the start; `version` counts from 0 in its application's versions.

    `name` is its project's, or "". `size_flop` and `estimate_flop` are of the whole job, of which `done_fraction` is
    done. `received_secs` and `finished_secs` are times before the start: 0 or negative.
    """

    project: str
    app: str
    size_flop: float
    estimate_flop: float
    deadline_secs: float
    version: int = 0
    state: StartState = StartState.NEW
    done_fraction: float = 0.0
    received_secs: float = 0.0
    finished_secs: float = 0.0
    name: str = ""


def check_project(project: Project) -> None:
    check_name("project.name", project.name)
    at = project.name
    check_number(f"{at}.share", project.share, 0, MAX_SHARE)
    check_number(f"{at}.request_delay_secs", project.request_delay_secs, 0, MAX_SECS)
    check_number(f"{at}.max_concurrent", project.max_concurrent, 0, MAX_INSTANCES)
    check_availability(f"{at}.available", project.available)
    check_number(f"{at}.rec", project.standing.rec, 0, 1e15)
    check_number(f"{at}.debt_secs", project.standing.debt_secs, -MAX_SECS, MAX_SECS)
    for kind, debt_secs in project.standing.ltd_secs:
        check_number(f"{at}.ltd_secs[{kind}]", debt_secs, -MAX_SECS, MAX_SECS)
    check_backoffs(at, project.backoffs)
    check_count(f"{at}.not_asked", project.not_asked, 0, MAX_KINDS)
    check_count(f"{at}.apps", project.apps, 0, MAX_APPS)
    for app in project.apps:
        check_app(at, app)


def check_backoffs(at: str, backoffs: Backoffs) -> None:
    check_number(f"{at}.allowed_secs", backoffs.allowed_secs, 0, MAX_SECS)
    check_number(f"{at}.next_rpc_secs", backoffs.next_rpc_secs, 0, MAX_SECS)
    check_number(f"{at}.failures", backoffs.failures, 0, MAX_FAILURES)
    check_count(f"{at}.backoffs.kinds", backoffs.kinds, 0, MAX_KINDS)
    for kind, until_secs, interval_secs in backoffs.kinds:
        check_number(f"{at}.backoffs[{kind}]", until_secs, 0, MAX_SECS)
        check_number(f"{at}.backoffs[{kind}].interval", interval_secs, 0, MAX_SECS)


def check_app(project: str, app: App) -> None:
    check_name(f"{project}.app.name", app.name)
    at = f"{project}.{app.name}"
    check_number(f"{at}.latency_bound_secs", app.latency_bound_secs, 1, MAX_SECS)
    check_number(f"{at}.weight", app.weight, 0, 1e9)
    check_number(f"{at}.max_concurrent", app.max_concurrent, 0, MAX_INSTANCES)
    for name, normal in (("size", app.size), ("estimate", app.estimate)):
        check_number(f"{at}.{name}.mean", normal.mean, MIN_JOB_FLOP, MAX_FLOP)
        check_number(f"{at}.{name}.std_dev", normal.std_dev, 0, MAX_FLOP)
    check_number(f"{at}.working_set_bytes", app.working_set_bytes, 0, MAX_RAM_BYTES)
    check_count(f"{at}.versions", app.versions, 0, MAX_VERSIONS)
    for version in app.versions:
        check_number(f"{at}.flops", version.flops, 1, MAX_FLOPS)
        check_number(f"{at}.cpus", version.cpus, 0, MAX_INSTANCES)
        check_number(f"{at}.gpus", version.gpus, 0, MAX_INSTANCES)
        if bool(version.gpu) != (version.gpus > 0) or (not version.gpu and version.cpus <= 0):
            raise ScenarioError(f"{at}.versions", "a version must use some CPU, or name a GPU and use some of it")
        if 0 < app.size.mean / version.flops < 1e-3:
            raise ScenarioError(f"{at}.flops", "its tasks would take less than a millisecond")


def check_job(job: StartJob, projects: tuple[Project, ...], kinds: set[str]) -> None:
    at = f"task of {job.project}"
    found = [app for project in projects if project.name == job.project for app in project.apps if app.name == job.app]
    if not found:
        raise ScenarioError(at, f"the scenario has no application {job.app!r} of that project")
    if not 0 <= job.version < len(found[0].versions) or found[0].versions[job.version].kind not in kinds:
        raise ScenarioError(at, "its version cannot run on this computer")
    if job.name:
        check_name(f"{at}.name", job.name)
    check_number(f"{at}.size_flop", job.size_flop, MIN_JOB_FLOP, MAX_FLOP)
    check_number(f"{at}.estimate_flop", job.estimate_flop, MIN_JOB_FLOP, MAX_FLOP)
    check_number(f"{at}.deadline_secs", job.deadline_secs, -MAX_SECS, MAX_SECS)
    check_number(f"{at}.done_fraction", job.done_fraction, 0, 1)
    check_number(f"{at}.received_secs", job.received_secs, -MAX_SECS, 0)
    check_number(f"{at}.finished_secs", job.finished_secs, -MAX_SECS, 0)
