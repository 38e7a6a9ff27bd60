"""The projects of a scenario: their applications, their servers, and the jobs present at the start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from emulator.engine.scenario.checks import (
    CPU,
    MAX_APPS,
    MAX_FAILURES,
    MAX_FLOP,
    MAX_FLOPS,
    MAX_INSTANCES,
    MAX_KINDS,
    MAX_NAME_CHARS,
    MAX_RAM_BYTES,
    MAX_SECS,
    MAX_VERSIONS,
    MIN_JOB_FLOP,
    Between,
    Chars,
    Count,
    Instances,
    Label,
    Name,
    ScenarioError,
    Secs,
    Share,
    check_limits,
    check_number,
    check_text,
)
from emulator.engine.scenario.host import Availability, check_availability

JobFlop = Annotated[float, Between(MIN_JOB_FLOP, MAX_FLOP)]
DebtSecs = Annotated[float, Between(-MAX_SECS, MAX_SECS)]
PastSecs = Annotated[float, Between(-MAX_SECS, 0)]
MAX_DOWNTIMES: Final = 1000  # of one project
MAX_EXCLUDED_DEVICE: Final = 61  # the kernel stores them as the bits of a number
MAX_EXCLUDED_GPUS: Final = 1000


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution of FLOP; negative draws are cut off. With `std_dev` 0 it is a constant."""

    mean: JobFlop
    std_dev: Annotated[float, Between(0, MAX_FLOP)] = 0.0


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an application: the devices that one of its jobs occupies, and its speed there.

    `cpus` is the number of CPUs it uses. A GPU version names its `gpu` kind and uses `gpus` instances of it (may be a
    fraction). `flops` is the speed of the job as a whole: size / flops = run time.
    """

    flops: Annotated[float, Between(1, MAX_FLOPS)]
    cpus: Annotated[float, Between(0, MAX_INSTANCES)] = 1.0
    gpu: Label = ""
    gpus: Annotated[float, Between(0, MAX_INSTANCES)] = 0.0

    @property
    def kind(self) -> str:
        """The kind of processor it is for: the GPU's if it uses one."""
        return self.gpu or CPU


@dataclass(frozen=True, slots=True)
class App:
    """An application: its jobs' real sizes, the server's estimate of them, and their time limit.

    Size and estimate are drawn independently. `weight` is the relative number of jobs of this application among
    the project's; at most `max_concurrent` of its jobs run at once (0: no limit). A running job takes
    `working_set_bytes` of RAM (0: not known, and not counted). `error_rate` is the probability that a job fails, at a
    random part of its run time.
    """

    name: Name
    versions: Annotated[tuple[Version, ...], Count(0, MAX_VERSIONS)]
    size: Normal
    estimate: Normal
    latency_bound_secs: Annotated[float, Between(1, MAX_SECS)]
    weight: Annotated[float, Between(0, 1e9)] = 1.0
    max_concurrent: Instances = 0
    non_cpu_intensive: bool = False  # such an application takes no part in scheduling and is left out
    working_set_bytes: Annotated[float, Between(0, MAX_RAM_BYTES)] = 0.0
    error_rate: Annotated[float, Between(0, 1)] = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A project's accounts at the start; each policy reads its own.

    `rec` in credit per day; `ltd_secs` the long-term debt per kind of processor in instance-seconds, as pairs;
    `debt_secs` the debt of the 2005 policy in CPU-seconds.
    """

    rec: Annotated[float, Between(0, 1e15)] = 0.0
    ltd_secs: Annotated[tuple[tuple[Name, DebtSecs], ...], Count(0, MAX_KINDS)] = ()
    debt_secs: DebtSecs = 0.0


@dataclass(frozen=True, slots=True)
class Downtime:
    """A time for which a project's server is down: once, or every `every_secs` from one start to the next."""

    from_secs: Secs
    length_secs: Secs
    every_secs: Secs = 0.0  # 0: once

    def covers(self, now: float) -> bool:
        """Whether the server is down; the end itself is not part of it."""
        since = now - self.from_secs
        if since < 0:
            return False
        return (since % self.every_secs if self.every_secs else since) < self.length_secs


@dataclass(frozen=True, slots=True)
class Backoffs:
    """Delays and demands for contacts with a project at the start. Seconds from the start.

    `allowed_secs`: no RPC before that. `next_rpc_secs`: the server asked to be contacted then (0: it did not).
    `failures`: RPCs that failed in a row. `kinds`: per kind of processor (its name, until when it is not requested, the
    present interval, which doubles each time).
    """

    allowed_secs: Secs = 0.0
    next_rpc_secs: Secs = 0.0
    failures: Annotated[int, Between(0, MAX_FAILURES)] = 0
    kinds: Annotated[tuple[tuple[Name, Secs, Secs], ...], Count(0, MAX_KINDS)] = ()


@dataclass(frozen=True, slots=True)
class ExcludedGpu:
    """A GPU that a project's jobs may not use: of which kind, the number of the device from 0, and for which
    application ("": for all).
    """

    gpu: Name
    device: Annotated[int, Between(0, MAX_EXCLUDED_DEVICE)]
    app: Label = ""


@dataclass(frozen=True, slots=True)
class Project:
    """A project, its share and how its server behaves.

    Projects of higher `priority` come first, whatever the shares, under `rec` and `rec-letter`; those without a share
    come last.

    `attached` is False for one that an `Attach` event brings in. A server that `has_work` always has jobs of all
    its applications. `workload_check`: the server simulates all the client's jobs before it sends one, instead
    of the simple check (see docs/explanation/emulator.md). `request_delay_secs` is the least time between two RPCs,
    `reply_delay_secs` the time from a request to its reply. The server is down in its `downtimes`, and when the
    random `available` says so.
    `error_delay_secs`: after a failed job no RPC is made for between this and its double, doubled again with each
    further failure, of a job or of an RPC, until the server answers; at most 4 hours, or this if it is longer.
    """

    name: Name
    share: Share
    apps: Annotated[tuple[App, ...], Count(0, MAX_APPS)] = ()
    available: Availability = Availability()
    standing: Standing = Standing()
    attached: bool = True
    has_work: bool = True
    suspended: bool = False
    no_new_tasks: bool = False
    workload_check: bool = False
    uses_dcf: bool = False
    request_delay_secs: Secs = 0.0
    max_concurrent: Instances = 0
    backoffs: Backoffs = Backoffs()
    # Kinds of processor for which the project is never asked.
    not_asked: Annotated[tuple[Name, ...], Count(0, MAX_KINDS)] = ()
    error_delay_secs: Secs = 60.0
    reply_delay_secs: Secs = 0.0
    downtimes: Annotated[tuple[Downtime, ...], Count(0, MAX_DOWNTIMES)] = ()
    priority: Annotated[int, Between(-100, 100)] = 0
    excluded_gpus: Annotated[tuple[ExcludedGpu, ...], Count(0, MAX_EXCLUDED_GPUS)] = ()


class StartState(StrEnum):
    """The state of a job that is present at the start."""

    NEW = "new"  # it has not run
    BEGUN = "begun"  # it has run, and was preempted
    RUNNING = "running"
    SUSPENDED = "suspended"  # by the owner: it does not run, and its project is not asked for work
    FINISHED = "finished"  # it waits to be reported


@dataclass(frozen=True, slots=True)
class StartJob:
    """A job that is present at the start; `version` counts from 0 in its application's versions.

    `name` is its project's, or "". `size_flop` and `estimate_flop` are of the whole job, of which `done_fraction` is
    done. `received_secs` and `finished_secs` are times before the start: 0 or negative.
    """

    project: Name
    app: Name
    size_flop: JobFlop
    estimate_flop: JobFlop
    deadline_secs: Annotated[float, Between(-MAX_SECS, MAX_SECS)]
    version: Annotated[int, Between(0, MAX_VERSIONS - 1)] = 0
    state: StartState = StartState.NEW
    done_fraction: Annotated[float, Between(0, 1)] = 0.0
    received_secs: PastSecs = 0.0
    finished_secs: PastSecs = 0.0
    name: Label = ""


def check_project(project: Project) -> None:
    check_limits("project." if not project.name else f"{project.name}.", project)
    at = project.name
    check_availability(f"{at}.available", project.available)
    check_limits(f"{at}.", project.standing)
    for kind, debt_secs in project.standing.ltd_secs:
        check_text(f"{at}.ltd_secs", kind, Chars(1, MAX_NAME_CHARS))
        check_number(f"{at}.ltd_secs[{kind}]", debt_secs, -MAX_SECS, MAX_SECS)
    for downtime in project.downtimes:
        check_limits(f"{at}.downtime.", downtime)
        if 0 < downtime.every_secs <= downtime.length_secs:
            raise ScenarioError(f"{at}.downtime.every_secs", "downtime_too_long")
    check_backoffs(at, project.backoffs)
    for excluded in project.excluded_gpus:
        check_limits(f"{at}.excluded_gpus.", excluded)
    for kind in project.not_asked:
        check_text(f"{at}.not_asked", kind, Chars(1, MAX_NAME_CHARS))
    for app in project.apps:
        check_app(at, app)


def check_backoffs(at: str, backoffs: Backoffs) -> None:
    check_limits(f"{at}.backoffs.", backoffs)
    for kind, until_secs, interval_secs in backoffs.kinds:
        check_text(f"{at}.backoffs.kinds", kind, Chars(1, MAX_NAME_CHARS))
        check_number(f"{at}.backoffs[{kind}]", until_secs, 0, MAX_SECS)
        check_number(f"{at}.backoffs[{kind}].interval", interval_secs, 0, MAX_SECS)


def check_app(project: str, app: App) -> None:
    check_limits(f"{project}.{app.name or 'app'}.", app)
    at = f"{project}.{app.name}"
    check_limits(f"{at}.size.", app.size)
    check_limits(f"{at}.estimate.", app.estimate)
    for version in app.versions:
        check_limits(f"{at}.", version)
        if bool(version.gpu) != (version.gpus > 0) or (not version.gpu and version.cpus <= 0):
            raise ScenarioError(f"{at}.versions", "version_uses_nothing")
        if 0 < app.size.mean / version.flops < 1e-3:
            raise ScenarioError(f"{at}.flops", "tasks_too_short")


def check_job(job: StartJob, projects: tuple[Project, ...], kinds: set[str]) -> None:
    at = f"task of {job.project}"
    check_limits(f"{at}.", job)
    apps = [app for project in projects if project.name == job.project for app in project.apps if app.name == job.app]
    if not apps:
        raise ScenarioError(at, "no_such_app", name=job.app)
    if not 0 <= job.version < len(apps[0].versions) or apps[0].versions[job.version].kind not in kinds:
        raise ScenarioError(at, "version_cannot_run")
