"""The round-robin simulation in the documents' words, carried out literally."""

from __future__ import annotations

from dataclasses import dataclass, field

from emulator.engine.client import Client
from emulator.engine.state import Job


@dataclass
class Case:
    """A client with jobs, at a time; each project's rank, and by how much it grows per FLOP."""

    client: Client
    now: float
    ranks: dict[int, float]
    units: dict[int, float]
    tiers: dict[int, int] = field(default_factory=dict)  # projects of a smaller one come first; 0 unless it is here


def may_run(client: Client, job: Job, active: list[Job]) -> bool:
    """Whether limits on jobs at once, and excluded GPUs, let it run beside those."""
    excluded = barred_devices(client, job)
    if excluded:
        # Each of those runs on one of the devices that this one may use.
        same_devices = [
            other for other in active if other.kind == job.kind and barred_devices(client, other) >= excluded
        ]
        allowed = client.count[job.kind] - len(excluded)
        if sum(other.usage for other in same_devices) + job.usage > allowed + 1e-9:
            return False
    of_app, of_project = job.app.app.max_concurrent, job.project.project.max_concurrent
    same_app = sum(other.app is job.app for other in active)
    same_project = sum(other.project is job.project for other in active)
    return not (of_app and same_app >= of_app) and not (of_project and same_project >= of_project)


def barred_devices(client: Client, job: Job) -> set[int]:
    """The GPUs that a job may not use."""
    return {
        excluded.device
        for excluded in job.project.project.excluded_gpus
        if excluded.gpu == client.kinds[job.kind]
        and excluded.device < client.count[job.kind]
        and excluded.app in ("", job.app.app.name)
    }


def order_of(case: Case, job: Job, ranks: dict[int, float]) -> tuple[int, float, int, int]:
    """What comes first: the project of the smallest rank, and of it the job that arrived first."""
    project = job.project.index
    return case.tiers.get(project, 0), ranks[project], project, job.id


@dataclass
class Running:
    """A job that has an instance up to a time: the end of its slice, or its own."""

    job: Job
    until: float


def give_out(
    case: Case, at: float, ready: list[Job], running: list[Running], left: dict[int, float], ranks: dict[int, float]
) -> list[float]:
    """Gives free instances to ready jobs; returns the idle instances per kind.

    GPUs first: as long as an instance is free, the project with the smallest rank gets a slice for its first job that
    fits, and its rank grows by that slice. The last CPU job may take more CPUs than there are.
    """
    client = case.client
    idle = [0.0] * len(client.kinds)
    for kind in (*range(1, len(client.kinds)), 0):
        while True:
            active = [each.job for each in running]
            used = sum(job.usage if job.kind == kind else 0.0 if kind else job.cpus for job in active)
            free = client.instances[kind] - used
            may = [job for job in ready if job.kind == kind and may_run(client, job, active)]
            fitting = [job for job in may if not kind or job.usage <= free + 1e-9]
            if free <= 1e-9 or not fitting:
                idle[kind] = 0.0 if may else max(0.0, free)  # none, if one waits that is too large for what is free
                break
            first = min(fitting, key=lambda job: order_of(case, job, ranks))
            secs = min(client.period_secs, left[first.id])
            ready.remove(first)
            running.append(Running(first, at + secs))
            left[first.id] -= secs
            ranks[first.project.index] += case.units[first.project.index] * first.counted_flops * secs
    return idle


@dataclass
class Told:
    """What the document says of a case: per kind the idle instances now, the saturated time up to the end of the
    buffer, and the shortfall; by job when it would end, in seconds from now."""

    idle: list[float]
    saturated: list[float]
    shortfall: list[float]
    ends: dict[int, float]


def literally(case: Case) -> Told:
    """ "One-hour time slices are given to projects in turn", to the end of all jobs."""
    client, ranks = case.client, dict(case.ranks)
    ready = [job for job in client.jobs() if not job.project.suspended]
    left = {job.id: job.left_secs(case.now) / client.up_fraction[job.kind] for job in ready}
    running: list[Running] = []
    kinds = range(len(client.kinds))
    horizon = client.buffer_total_secs
    told = Told([], [horizon for _ in kinds], [0.0 for _ in kinds], {})
    at = 0.0
    while at < horizon or ready or running:
        idle = give_out(case, at, ready, running, left, ranks)
        told.idle = told.idle or idle
        until = min([turn.until for turn in running], default=horizon)
        for kind in kinds:
            told.shortfall[kind] += idle[kind] * max(0.0, min(until, horizon) - at)
            if idle[kind] > 1e-9:
                told.saturated[kind] = min(told.saturated[kind], at)
        at = until
        over = [turn.job for turn in running if turn.until <= at]
        running = [turn for turn in running if turn.until > at]
        told.ends.update({job.id: at for job in over if left[job.id] <= 1e-6})
        ready += [job for job in over if left[job.id] > 1e-6]
    return told
