"""A submitter's limits: priorities, deadlines, apps, and how much may be unfinished at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from portal.languages.messages import Message

LEAST_DEADLINE_SECS: Final = 3_600
"""Clients ask for work now and then, not at once; what is not back by its deadline is computed twice."""
FAST_FLOPS: Final = 20e9
"""A job with less time than a processor of this speed needs is hardly ever in time."""


@dataclass(frozen=True, slots=True)
class SubmitterLimits:
    """A submitter's limits. ``app_names`` empty: all apps.

    None: unlimited. ``max_jobs`` and ``max_fpops``: of undecided workunits, the FLOPs of all their copies.
    """

    max_priority: int
    max_jobs: int | None = None
    max_fpops: float | None = None
    app_names: Sequence[str] = ()


class UnderWay(NamedTuple):
    """Workunits, and the estimated FLOPs of all their copies."""

    njobs: int
    fpops: float


class RequestedJob(NamedTuple):
    """A job of a submission; ``fpops``: of one copy."""

    fpops: float
    ncopies: int
    priority: int
    delay_bound_secs: int


class Excess(NamedTuple):
    """A limit that is exceeded: the field's position, and why."""

    field: str
    message: Message


def least_deadline_secs(fpops: float) -> int:
    """Return the shortest delay bound of a job."""
    return max(LEAST_DEADLINE_SECS, int(fpops / FAST_FLOPS) + 1)


def excess(limits: SubmitterLimits, app_name: str, jobs: Sequence[RequestedJob], before: UnderWay) -> Excess | None:
    """Return the first limit that a submission exceeds, if any. ``before``: what is unfinished without it."""
    if limits.app_names and app_name not in limits.app_names:
        return Excess("app", Message("app_not_yours", app=app_name))
    for number, job in enumerate(jobs):
        if job.priority > limits.max_priority:
            return Excess(f"jobs[{number}].priority", Message("priority_limit", most=limits.max_priority))
        if job.delay_bound_secs < (least_secs := least_deadline_secs(job.fpops)):
            return Excess(f"jobs[{number}].delay_bound_secs", Message("deadline_limit", least_secs=least_secs))
    if limits.max_jobs is not None and before.njobs + len(jobs) > limits.max_jobs:
        message = Message("open_jobs_limit", number=before.njobs, added=len(jobs), most=limits.max_jobs)
        return Excess("jobs", message)
    fpops = sum(job.fpops * job.ncopies for job in jobs)
    if limits.max_fpops is not None and before.fpops + fpops > limits.max_fpops:
        message = Message(
            "open_fpops_limit",
            fpops=f"{before.fpops:.3g}",
            added=f"{fpops:.3g}",
            most=f"{limits.max_fpops:.3g}",
        )
        return Excess("jobs", message)
    return None
