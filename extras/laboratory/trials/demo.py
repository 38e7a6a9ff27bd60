"""A history of validated credit for ``make run``: weeks of work of the demo volunteer's computers and of others'.

All of it goes through the real validator and feeder, on a clock that is passed in. The work of the volunteer's
computers is passed in too, so that these tasks match what the computers told the account manager.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from django.db import transaction

from credit.engine.facts import ProcessorType
from credit.engine.probation import Ending
from credit.models import App
from extras.laboratory.trials import demo_listed, demo_texts
from extras.laboratory.trials.population import (
    KINDS,
    LINUX,
    USUAL_FPOPS,
    WINDOWS,
    Cheat,
    Computer,
    Job,
    Report,
    make_report,
)
from extras.laboratory.trials.simulation import (
    DELAY_BOUND,
    SimulatedProject,
    insert_timed,
    make_computers,
    release_versions,
    validate_until_decided,
)
from portal.models import Host, User

HISTORY: Final = dt.timedelta(days=21)
STEP: Final = dt.timedelta(days=1)
REPORTS_EVERY: Final = dt.timedelta(hours=6)
WINGMEN: Final = 24
SEED: Final = 2026
WRONG: Final = 0.015
"""The fraction of the volunteer's tasks with a wrong output, as from a computer with faulty memory."""
OUT: Final = 4
"""Tasks that each computer has not reported."""
JOB_SECS: Final = 3 * 3600.0
PROGRAMS: Final = [kind for kind in KINDS if not (kind.plan_class == "mt" or kind.processor_type == ProcessorType.ATI)]


@dataclass(frozen=True, slots=True)
class ReportedWork:
    """A computer's work between two reports; ``failed`` of its CPU and GPU jobs failed."""

    since: dt.datetime
    until: dt.datetime
    cpu_secs: float
    gpu_secs: float
    cpu_jobs: int
    gpu_jobs: int
    failed: int


Work = Mapping[int, Sequence[ReportedWork]]
Timed = tuple[Job, list[dt.datetime]]


def make_history(owner: User, now: dt.datetime, work: Work | None) -> int:
    """Simulate three weeks of an app; return the number of results. Safe to repeat: only the first call does anything.

    ``work``: by the computers' ids; without it, each computer has worked with a fifth of its processors.
    """
    app, is_new = App.objects.get_or_create(
        name="sediment",
        defaults={
            "user_friendly_name": "Sediment transport",
            "description": demo_texts.APP,
            "is_deprecated": True,
        },
    )
    if not is_new:
        return 0
    rng = Random(SEED)
    hosts = list(Host.objects.filter(owner=owner, merged_into=None).order_by("pk"))
    others = make_computers(
        rng, WINGMEN, anonymous_part=0.1, cheats={Cheat.EXAGGERATE: 0.05, Cheat.WRONG: 0.05, Cheat.ONE_TIME: 0.05}
    )
    demo_listed.choose(others, now - HISTORY)
    project = SimulatedProject(app, PROGRAMS, release_versions(app, PROGRAMS), others, rng)
    jobs: list[Timed] = []
    for host in hosts:
        done = work.get(host.pk, ()) if work is not None else _usual_work(host, now)
        jobs += _jobs_of(project, _computer(host), done, now)
    return _play(project, jobs, now)


def _play(project: SimulatedProject, jobs: list[Timed], now: dt.datetime) -> int:
    """Give each day its jobs, by the last report of each, and validate them at its end."""
    jobs.sort(key=lambda timed: max(timed[1]))
    nresults = at = 0
    end = now - HISTORY
    while end < now:
        end = min(now, end + STEP)
        upto = next((n for n in range(at, len(jobs)) if max(jobs[n][1]) > end), len(jobs))
        with transaction.atomic():
            nresults += insert_timed(project, jobs[at:upto], now)
        nresults += validate_until_decided(project, end)[0]
        at = upto
    return nresults


def _usual_work(host: Host, now: dt.datetime) -> Iterator[ReportedWork]:
    until = now - HISTORY
    end = min(now, host.last_contact_at or now)
    while (until := until + REPORTS_EVERY) <= end:
        secs = REPORTS_EVERY.total_seconds() * max(1, host.ncpus) / 5
        yield ReportedWork(until - REPORTS_EVERY, until, secs, 0.0, max(1, round(secs / JOB_SECS)), 0, 0)


def _jobs_of(
    project: SimulatedProject, computer: Computer, done: Iterable[ReportedWork], now: dt.datetime
) -> Iterator[Timed]:
    """Return the jobs of one of the volunteer's computers, and those that it has not reported."""
    stretch = None
    for stretch in done:
        failed = set(project.rng.sample(range(stretch.cpu_jobs + stretch.gpu_jobs), stretch.failed))
        for number in range(stretch.cpu_jobs + stretch.gpu_jobs):
            is_gpu = number >= stretch.cpu_jobs
            secs = stretch.gpu_secs / stretch.gpu_jobs if is_gpu else stretch.cpu_secs / stretch.cpu_jobs
            if (job := _job(project, computer, secs, is_gpu=is_gpu)) is not None:
                yield _reported(project, job, stretch, number in failed, now)
    if stretch is not None:
        for _ in range(OUT):
            if (job := _job(project, computer, JOB_SECS, is_gpu=False)) is not None:
                yield _not_reported(project, job, stretch.until, now)


def _job(project: SimulatedProject, computer: Computer, secs: float, *, is_gpu: bool) -> Job | None:
    """Return a job that takes the computer this long, with its own report; None if it has no program for it."""
    able = [
        n for n in computer.kinds(project.kinds) if (project.kinds[n].processor_type != ProcessorType.CPU) == is_gpu
    ]
    if not able:
        return None
    kind = project.kinds[able[0]]
    flops = kind.gpu_usage * computer.gpu_flops + kind.avg_ncpus * computer.p_fpops
    job = Job(max(1.0, secs) * flops * kind.efficiency, 1.0, [])
    job.reports.append(_report(project, computer, job, is_gpu=is_gpu))
    return job


def _report(project: SimulatedProject, computer: Computer, job: Job, *, is_gpu: bool) -> Report:
    kinds = [kind for kind in project.kinds if (kind.processor_type != ProcessorType.CPU) == is_gpu]
    report = make_report(project.rng, computer, kinds, job.fpops_est, job.fpops_est / USUAL_FPOPS)
    if report.kind_index is not None:
        report.kind_index = list(project.kinds).index(report.kind)
    return report


def _wingman(project: SimulatedProject, job: Job) -> Report:
    """Return another volunteer's computer that does the job too, with the same kind of processor."""
    is_gpu = job.reports[0].kind.processor_type != ProcessorType.CPU
    taken = {report.computer.user_id for report in job.reports}
    able = [
        computer
        for computer in project.computers
        if computer.user_id not in taken and (not is_gpu or computer.gpu_type == ProcessorType.NVIDIA)
    ]
    return _report(project, project.rng.choice(able), job, is_gpu=is_gpu)


def _reported(project: SimulatedProject, job: Job, stretch: ReportedWork, has_failed: bool, now: dt.datetime) -> Timed:
    """Report the job between two contacts; the wingman's report comes hours later, or is still missing."""
    rng, own = project.rng, job.reports[0]
    own.ending = Ending.FAILED if has_failed else Ending.SUCCESS
    own.is_right = rng.random() >= WRONG
    at = stretch.until - (stretch.until - stretch.since) * rng.random()
    moments = [at]
    for _ in range(project.nreplicas - (0 if has_failed else 1)):
        wingman = _wingman(project, job)
        later = at + dt.timedelta(hours=rng.uniform(0, 30))
        if later > now:
            wingman.is_out, later = True, at - dt.timedelta(hours=1)
        job.reports.append(wingman)
        moments.append(later)
    return job, moments


def _not_reported(project: SimulatedProject, job: Job, last: dt.datetime, now: dt.datetime) -> Timed:
    """Send the job before the computer's last contact. If the deadline passed, two others have done the job
    meanwhile.
    """
    job.reports[0].is_out = True
    sent_at = last - dt.timedelta(minutes=project.rng.randrange(5, 170))
    moments = [sent_at]
    is_late = sent_at + DELAY_BOUND < now
    for _ in range(project.nreplicas if is_late else 1):
        wingman = _wingman(project, job)
        moments.append(sent_at)
        if is_late:
            moments[-1] = sent_at + DELAY_BOUND + (now - sent_at - DELAY_BOUND) * project.rng.random()
        else:
            wingman.is_out = True
        job.reports.append(wingman)
    return job, moments


def _computer(host: Host) -> Computer:
    """Return the platform in the simulation; a system that the app has no version for counts as Linux."""
    types = {kind.processor_type for kind in PROGRAMS if kind.processor_type != ProcessorType.CPU}
    gpu: dict[str, Any] = next((c for c in host.coprocs if c.get("type") in types), {})
    platform = host.platform_name if host.platform_name == WINDOWS else LINUX
    return Computer(
        host.pk,
        host.owner_id,
        platform,
        p_fpops=host.p_fpops or 3e9,
        ncpus=max(1, host.ncpus),
        gpu_type=str(gpu.get("type", "")),
        gpu_flops=float(gpu.get("peak_flops") or 0),
    )
