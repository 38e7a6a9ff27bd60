"""Abort, retire, and set when a batch expires. All of it is safe to repeat."""

from __future__ import annotations

import datetime as dt
from typing import Final

from credit.models import Batch, Workunit
from extras.remote_jobs.keys import Caller
from extras.remote_jobs.operations.objects import SUCCESS, JobsError, Reply, batch_of, check_owner, job_named
from extras.remote_jobs.wire.replies import error
from extras.remote_jobs.wire.xml_tree import Element
from scheduler.submission import batches

MAX_JOBS: Final = 10_000


def abort_batch(caller: Caller, request: Element, now: dt.datetime) -> Reply:
    batches.cancel(batch_of(caller, request, "not owner"), now)
    return SUCCESS


def abort_jobs(caller: Caller, request: Element, now: dt.datetime) -> Reply:
    """Abort jobs. The first error ends it; jobs aborted before that stay aborted, and are named.

    ``<min_job_id>`` and ``<max_job_id>`` abort the caller's own jobs with numbers in that range.
    """
    if request.first("min_job_id") is not None:
        return _abort_range(caller, request.integer("min_job_id"), request.integer("max_job_id"), now)
    names = [element.text for element in request.all("job_name")]
    if len(names) > MAX_JOBS:
        raise JobsError(f"{len(names)} jobs; the limit is {MAX_JOBS}")
    aborted: Reply = []
    for name in names:
        try:
            _abort(caller, name, now)
        except JobsError as fault:
            return [*aborted, error(str(fault))]
        aborted.append(("aborted", name))
    return [*aborted, *SUCCESS]


def _abort_range(caller: Caller, first: int, last: int, now: dt.datetime) -> Reply:
    own = Workunit.objects.filter(batch__owner=caller.user, app__in=caller.app_ids, pk__range=(first, last))
    for batch in Batch.objects.filter(pk__in=own.values("batch")).order_by("pk"):
        batches.cancel(batch, now, list(own.filter(batch=batch).values_list("pk", flat=True)))
    return SUCCESS


def _abort(caller: Caller, name: str, now: dt.datetime) -> None:
    job = job_named(name)
    if job is None:
        raise JobsError(f"no job {name}")
    if job.batch is None:
        raise JobsError(f"job {name} is not part of a batch")
    check_owner(caller, job.batch, "not owner of batch")
    if not job.is_archived:
        batches.cancel(job.batch, now, [job.id])


def retire_batch(caller: Caller, request: Element, now: dt.datetime) -> Reply:
    batches.give_up(batch_of(caller, request), now)
    return SUCCESS


def set_expire_time(caller: Caller, request: Element, _now: dt.datetime) -> Reply:
    batch = batch_of(caller, request)
    Batch.objects.filter(pk=batch.pk).update(expires_at=request.time("expire_time"))
    return SUCCESS
