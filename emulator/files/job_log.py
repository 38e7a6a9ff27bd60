"""Read a client's `job_log_<project>.txt`: the real run times of its finished tasks.

A line per finished task (BOINC client, RESULT::append_log_record): the Unix time, then names and values: `ue` the
estimated run time, `ct` its CPU time, `fe` the estimate in FLOP, `nm` its name, `et` its run time, `es` its exit
status. Lines of a client before 6.12 have no `es`. Pure: bytes in, dataclasses out.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Final

from emulator.engine.scenario import MAX_FLOP, MAX_SECS
from emulator.files.sections import ScenarioFileError
from emulator.files.time_log import LOG_BYTES_MAX

JOB_LOG: Final = re.compile(r"job_log_(.{1,200})\.txt")
JOBS_MAX: Final = 1000  # of an application: the newest
JOBS_MIN: Final = 3  # fewer are too little evidence

_LINE: Final = re.compile(
    rb"\d{1,11} ue ([\d.e+-]{1,40}) ct [\d.e+-]{1,40} fe ([\d.e+-]{1,40}) nm (\S{1,255}) et ([\d.e+-]{1,40})"
    rb"(?: es (-?\d{1,11}))?(?: [^\n]*)?"
)
_STEM: Final = re.compile(r"[^0-9]*")


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """A task that succeeded. `flops` is the speed at which its run time was estimated; 0 if unknown."""

    name: str
    run_secs: float
    estimate_flop: float
    flops: float


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The real sizes of an application's tasks: mean and standard deviation in FLOP, and the number of tasks.

    `per_estimate` is the real work of all of them divided by the estimate.
    """

    njobs: int
    mean_flop: float
    std_dev_flop: float
    per_estimate: float


@dataclass(frozen=True, slots=True)
class JobLog:
    """The tasks that succeeded, newest last, and the numbers of unreadable lines."""

    jobs: list[LoggedJob]
    bad_lines: tuple[int, ...]


def read_job_log(data: bytes, file: str) -> JobLog:
    """Return the content of a job log. Raises ScenarioFileError (file, line, reason) if no line can be read."""
    if len(data) > LOG_BYTES_MAX:
        raise ScenarioFileError(file, "", 0, "file_size_limit", limit_mib=LOG_BYTES_MAX >> 20)
    jobs: list[LoggedJob] = []
    bad: list[int] = []
    nread = 0
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        values = _values(match) if match is not None else None
        if match is None or values is None:
            bad.append(number)
            continue
        nread += 1
        estimate_secs, estimate_flop, run_secs = values
        if run_secs > 0 and int(match[5] or 0) == 0:
            flops = estimate_flop / estimate_secs if estimate_secs > 0 else 0.0
            jobs.append(LoggedJob(match[3].decode("latin-1"), run_secs, estimate_flop, flops))
    if bad and not nread:
        raise ScenarioFileError(file, "", bad[0], "no_job_log")
    return JobLog(jobs, tuple(bad))


def _values(match: re.Match[bytes]) -> tuple[float, float, float] | None:
    """Return the estimated run time, the estimate in FLOP, and the run time; None if one is no number in range."""
    try:
        ue, fe, et = float(match[1]), float(match[2]), float(match[4])
    except ValueError:
        return None
    in_range = 0 <= ue <= MAX_SECS and 0 <= fe <= MAX_FLOP and 0 <= et <= MAX_SECS
    return (ue, fe, et) if in_range else None


def by_app(jobs: Iterable[LoggedJob], tasks: Mapping[str, str], apps: Iterable[str]) -> dict[str, list[LoggedJob]]:
    """Group the logged tasks by application; those of an unknown application are under "".

    `tasks` are names of tasks whose application is known. The log itself names no application: a task is assigned to
    the one whose known tasks have the same beginning of their names (up to the first digit), or to the project's only
    one.
    """
    names = list(apps)
    stems: dict[str, set[str]] = {}
    for name, app in tasks.items():
        stems.setdefault(_stem(name), set()).add(app)
    jobs_by_app: dict[str, list[LoggedJob]] = {}
    for job in jobs:
        alike = {tasks[job.name]} if job.name in tasks else stems.get(_stem(job.name), set())
        if len(names) == 1:
            alike = set(names)
        jobs_by_app.setdefault(next(iter(alike)) if len(alike) == 1 else "", []).append(job)
    return jobs_by_app


def _stem(name: str) -> str:
    match = _STEM.match(name)
    return match[0] if match else ""


def run_times(jobs: list[LoggedJob], speeds: Iterable[float]) -> RunTimes | None:
    """Return the sizes implied by the newest of an application's tasks, if they are enough; `speeds` are those of its
    versions now.

    A task's size is its run time × the present speed of its version, so that the emulation gives the measured run time.
    Its version is the one whose speed is nearest to that of the estimate.
    """
    kinds = list(speeds)
    newest = jobs[-JOBS_MAX:]
    if len(newest) < JOBS_MIN or not kinds:
        return None
    sizes = [job.run_secs * min(kinds, key=lambda flops: _apart(job, flops)) for job in newest]
    mean = fsum(sizes) / len(sizes)
    variance = fsum([(size - mean) ** 2 for size in sizes]) / (len(sizes) - 1)
    estimated = fsum([job.estimate_flop for job in newest])
    return RunTimes(len(sizes), mean, sqrt(variance), fsum(sizes) / estimated if estimated > 0 else 1.0)


def _apart(job: LoggedJob, flops: float) -> float:
    return max(job.flops / flops, flops / job.flops) if job.flops > 0 else 0.0
