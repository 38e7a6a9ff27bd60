"""Cases that volunteers reported to BOINC, as small scenarios: computer and projects as far as the report describes
them.

Each has the policy of the client of that time. Clients since version 7 schedule by recent estimated credit, with the
habits that `emulator.engine.quirks` names; those from 6.6 to 6.12 by long-term debt per kind of processor, earlier ones
by a single debt. emulator.pages.texts.case_texts describes the observations. No Django, no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    GPU_EFFICIENCY,
    App,
    DayHours,
    Host,
    Hours,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    StartJob,
    StartState,
    Version,
)

GIB: Final = 2.0**30
_HOUR_SECS: Final = 3600.0
_SPEED: Final = 4e9  # of a CPU, and of a task on it
_GPU_SPEED: Final = 100e9  # of a GPU as it counts, and of a task on a whole one
_NVIDIA: Final = "NVIDIA"


class CaseFigure(StrEnum):
    """The subject of a report, as a figure of its runs."""

    IDLE = "idle"  # part of the computer's speed
    LATE = "late"  # tasks
    QUEUED = "queued"  # tasks that are at the client at the end
    LEAST_PART = "least part"  # of all work, the fraction of the project that got least, among those that have work
    CONTACTS = "contacts"  # for each task


@dataclass(frozen=True, slots=True)
class ReportedCase:
    """A report: number of its issue at github.com/BOINC/boinc, the policy of that time, and the figure to look at."""

    issue: int
    policy: PolicyName
    days: float
    figure: CaseFigure
    make: Callable[[], Scenario]

    @property
    def has_quirks(self) -> bool:
        """Whether the run of that time has the habits of BOINC's present code."""
        return self.policy == PolicyName.REC


def _host(cpus: int, *, gpus: int = 0, ram_gib: float = 0.0) -> Host:
    processors = [Processor(CPU, cpus, _SPEED)]
    if gpus:
        processors.append(Processor(_NVIDIA, gpus, _GPU_SPEED / GPU_EFFICIENCY, GPU_EFFICIENCY))
    return Host(tuple(processors), ram_bytes=ram_gib * GIB)


def _app(name: str, hours: float, deadline_days: float = 10.0, *, cpus: float = 1.0, **more: Any) -> App:
    """An app whose tasks take this many hours on this number of CPUs."""
    size = Normal(hours * _HOUR_SECS * _SPEED * cpus)
    return App(name, (Version(_SPEED * cpus, cpus=cpus),), size, size, deadline_days * DAY_SECS, **more)


def _gpu_app(name: str, hours: float, *, cpus: float = 0.1, gpus: float = 1.0) -> App:
    speed = _GPU_SPEED * gpus
    size = Normal(hours * _HOUR_SECS * speed)
    return App(name, (Version(speed, cpus=cpus, gpu=_NVIDIA, gpus=gpus),), size, size, 10 * DAY_SECS)


def _jobs(project: str, app: App, number: int, deadline_hours: float, **more: Any) -> tuple[StartJob, ...]:
    flop = app.size.mean
    return (StartJob(project, app.name, flop, flop, deadline_hours * _HOUR_SECS, **more),) * number


def backup_on_64_cpus() -> Scenario:
    """#1941: the main project is dry; the server of the backup project wants five minutes between requests."""
    main = Project("Main", 100, (_app("m", 1),), has_work=False)
    return Scenario(_host(64), (main, Project("Backup", 0, (_app("b", 0.25),), request_delay_secs=300.0)))


def gpus_idle_in_panic() -> Scenario:
    """#5079: far too much CPU work with one deadline, and GPU tasks that need a CPU each."""
    cpu = _app("cpu", 8, 2)
    project = Project("Einstein", 100, (cpu, _gpu_app("gpu", 1, cpus=1.0)))
    jobs = _jobs("Einstein", cpu, 80, 40)
    return Scenario(_host(8, gpus=2), (project,), Preferences(1.0, 0.0), jobs)


def short_task_behind_a_late_one() -> Scenario:
    """#5306: a task of 72 seconds, due in half an hour, behind one that is late and runs for hours."""
    long, short = _app("long", 5, 1), _app("short", 0.02, 1)
    late = _jobs("Yafu", long, 1, -1, state=StartState.RUNNING, done_fraction=0.3)
    jobs = (*late, *_jobs("Yafu", short, 1, 0.5), *_jobs("Yafu", long, 1, 1))
    return Scenario(_host(1), (Project("Yafu", 100, (long, short), no_new_tasks=True),), Preferences(0.1, 0.0), jobs)


def two_backup_projects() -> Scenario:
    """#5589: two projects of share 0, and the main one has no work."""
    backups = [Project(name, 0, (_app("a", 1),)) for name in ("First backup", "Second backup")]
    return Scenario(_host(2), (*backups, Project("Main", 100, (_app("m", 1),), has_work=False)))


def two_threads_on_three_cpus() -> Scenario:
    """#6745: three of four CPUs may be used, and tasks of two threads fill the buffer."""
    threads = _app("threads", 10, cpus=2)
    projects = (Project("Threads", 100, (threads,)), Project("Single", 100, (_app("single", 2),)))
    return Scenario(_host(4), projects, Preferences(0.1, 0.1, max_cpus_percent=75.0), _jobs("Threads", threads, 6, 240))


def half_a_gpu() -> Scenario:
    """#1211: tasks of A take half a GPU, those of B a whole one, and the buffer is small."""
    a = Project("A", 100, (_gpu_app("half", 2, gpus=0.5),))
    return Scenario(_host(4, gpus=1), (a, Project("B", 100, (_gpu_app("whole", 1),))), Preferences(0.1, 0.2))


def two_limited_projects() -> Scenario:
    """#4117: two projects may run two tasks at once each; a third one fills the rest."""
    limited = [Project(name, 100, (_app("a", 3),), max_concurrent=2) for name in ("Rosetta", "NumberFields")]
    return Scenario(_host(8), (*limited, Project("World Community Grid", 20, (_app("w", 2),))), Preferences(1.0, 0.0))


def limited_backup_project() -> Scenario:
    """#7010: a backup project for the GPUs that may run one task at once."""
    projects = (
        Project("CPDN", 100, (_app("multicore", 60, 30, cpus=4),)),
        Project("NumberFields", 100, (_app("n", 2),), max_concurrent=1),
        Project("Einstein", 0, (_gpu_app("gpu", 1, cpus=1.0),), max_concurrent=1, request_delay_secs=60.0),
    )
    return Scenario(_host(6, gpus=2), projects, Preferences(0.1, 0.1))


def first_client_with_cuda() -> Scenario:
    """#783: eight CPUs and a GPU; one project has work for the GPU alone, the other for CPUs."""
    gpu = Project("GPU project", 100, (_gpu_app("cuda", 0.5, cpus=0.04),))
    return Scenario(_host(8, gpus=1), (gpu, Project("CPU project", 100, (_app("cpu", 3),))))


def gpu_waits_for_its_turn() -> Scenario:
    """#912: three projects on two CPUs and a GPU; one of them has tasks for the GPU, too."""
    seti = Project("SETI", 100, (_app("cpu", 3), _gpu_app("gpu", 0.3, cpus=0.15)))
    return Scenario(_host(2, gpus=1), (seti, *(Project(name, 100, (_app("a", 4),)) for name in ("Rosetta", "WCG"))))


def suspended_tasks() -> Scenario:
    """#839: all tasks of a project are suspended, and it has the larger share."""
    app = _app("a", 6)
    jobs = _jobs("Suspended", app, 8, 240, state=StartState.SUSPENDED)
    projects = (Project("Suspended", 300, (app,)), Project("Other", 100, (_app("o", 6),)))
    return Scenario(_host(4), projects, jobs=jobs)


def no_network_at_weekends() -> Scenario:
    """#522: no network from Friday 18:30 to Monday 8:45, and tasks that are due after three and a half days."""
    never = [DayHours(day, 24.0, 0.0) for day in (0, 6)]
    hours = Hours(0.0, 24.0, (never[0], DayHours(1, 8.75, 24.0), DayHours(5, 0.0, 18.5), never[1]))
    projects = (
        Project("MalariaControl", 100, (_app("malaria", 2, 3.5),)),
        *(Project(name, 200, (_app("model", 200, 300),)) for name in ("Climate", "Climate Beta")),
    )
    monday = (24 + 9) * _HOUR_SECS
    return Scenario(_host(2), projects, Preferences(3.0, 0.25, network_hours=hours), week_secs=monday)


def tasks_of_700_megabytes() -> Scenario:
    """#3776: 2 GB and four CPUs; two of the large tasks fit, and small ones would fit beside them."""
    large = Project("Rosetta", 300, (_app("large", 8, 3, working_set_bytes=0.7 * GIB),))
    small = Project("Universe", 100, (_app("small", 3, working_set_bytes=0.05 * GIB),))
    return Scenario(_host(4, ram_gib=2), (large, small))


def tasks_of_seven_gigabytes() -> Scenario:
    """#5026: 24 CPUs and 32 GB; tasks of 7 GB fill the buffer, and a backup project has small ones."""
    large = _app("ecm P2", 12, working_set_bytes=7 * GIB)
    projects = (
        Project("Yoyo", 100, (large,)),
        Project("NFS", 0, (_app("nfs", 3, working_set_bytes=0.5 * GIB),)),
    )
    return Scenario(_host(24, ram_gib=32), projects, jobs=_jobs("Yoyo", large, 60, 240))


def one_task_at_a_time() -> Scenario:
    """#4396: the only project has share 0, beside a dry one, and both buffers are zero."""
    projects = (Project("PrimeGrid", 0, (_app("prime", 1),)), Project("Dry", 100, (_app("d", 1),), has_work=False))
    return Scenario(_host(4), projects, Preferences(0.0, 0.0))


def limited_app() -> Scenario:
    """#4322: an app may run one task at once, and more of its tasks than that are there."""
    arp = _app("arp1", 30, 7, max_concurrent=1)
    grid = Project("World Community Grid", 100, (arp, _app("mcm1", 2, 6)))
    return Scenario(_host(24), (grid,), Preferences(0.0, 0.2), _jobs("World Community Grid", arp, 12, 168))


def limit_that_is_not_reached() -> Scenario:
    """#5749: four tasks of two CPUs may run at once on 16, and the minimum buffer is shorter than a task."""
    lhc = Project("LHC", 100, (_app("ATLAS", 8, 7, cpus=2, max_concurrent=4),))
    return Scenario(_host(16), (lhc,), Preferences(0.1, 0.0))


def single_tasks_beside_wide_ones() -> Scenario:
    """#4780: six CPUs; the last tasks of one CPU wait while tasks of six CPUs run."""
    single = _app("single", 10, 2)
    projects = (Project("Single", 100, (single,), no_new_tasks=True), Project("Wide", 100, (_app("wide", 2, cpus=6),)))
    jobs = _jobs("Single", single, 4, 26)
    return Scenario(_host(6), projects, Preferences(0.1, 0.5), jobs)


def wide_tasks_wait() -> Scenario:
    """#1775: three tasks of a CPU run on eight; what waits needs all eight, and only a backup project has more."""
    single, wide = _app("single", 24), _app("ATLAS", 8, cpus=8)
    projects = (
        Project("Rosetta", 100, (single,), no_new_tasks=True),
        Project("LHC", 100, (wide,), no_new_tasks=True),
        Project("Backup", 0, (_app("b", 2),)),
    )
    running = _jobs("Rosetta", single, 3, 30, state=StartState.RUNNING, done_fraction=0.1)
    return Scenario(_host(8), projects, jobs=(*running, *_jobs("LHC", wide, 3, 240)))


REPORTED: Final = (
    ReportedCase(1941, PolicyName.REC, 1, CaseFigure.IDLE, backup_on_64_cpus),
    ReportedCase(5079, PolicyName.REC, 3, CaseFigure.IDLE, gpus_idle_in_panic),
    ReportedCase(5306, PolicyName.REC, 1, CaseFigure.LATE, short_task_behind_a_late_one),
    ReportedCase(5589, PolicyName.REC, 5, CaseFigure.LEAST_PART, two_backup_projects),
    ReportedCase(6745, PolicyName.REC, 2, CaseFigure.IDLE, two_threads_on_three_cpus),
    ReportedCase(1211, PolicyName.REC, 30, CaseFigure.IDLE, half_a_gpu),
    ReportedCase(4117, PolicyName.REC, 5, CaseFigure.QUEUED, two_limited_projects),
    ReportedCase(7010, PolicyName.REC, 2, CaseFigure.QUEUED, limited_backup_project),
    ReportedCase(783, PolicyName.LTD_SINGLE, 10, CaseFigure.IDLE, first_client_with_cuda),
    ReportedCase(912, PolicyName.LTD_SINGLE, 10, CaseFigure.IDLE, gpu_waits_for_its_turn),
    ReportedCase(839, PolicyName.LTD, 3, CaseFigure.IDLE, suspended_tasks),
    ReportedCase(522, PolicyName.LTD_SINGLE, 28, CaseFigure.LATE, no_network_at_weekends),
    ReportedCase(3776, PolicyName.REC, 5, CaseFigure.IDLE, tasks_of_700_megabytes),
    ReportedCase(5026, PolicyName.REC, 5, CaseFigure.IDLE, tasks_of_seven_gigabytes),
    ReportedCase(4396, PolicyName.REC, 3, CaseFigure.IDLE, one_task_at_a_time),
    ReportedCase(4322, PolicyName.REC, 3, CaseFigure.QUEUED, limited_app),
    ReportedCase(5749, PolicyName.REC, 3, CaseFigure.IDLE, limit_that_is_not_reached),
    ReportedCase(4780, PolicyName.REC, 3, CaseFigure.LATE, single_tasks_beside_wide_ones),
    ReportedCase(1775, PolicyName.REC, 2, CaseFigure.IDLE, wide_tasks_wait),
)
