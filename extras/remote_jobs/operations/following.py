"""The progress of batches and jobs, in the fields that BOINC's server gives."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Sequence
from typing import Any, Final

from django.db import connection

from credit.models import Batch, Outcome, Result
from extras.remote_jobs import sql
from extras.remote_jobs.keys import Caller
from extras.remote_jobs.operations.objects import (
    Job,
    JobsError,
    Reply,
    batch_of,
    check_owner,
    job_named,
    job_numbered,
    newest_batch,
)
from extras.remote_jobs.wire.states import JobFacts, error_names, instance_state, long_status, short_status
from extras.remote_jobs.wire.xml_tree import Element
from scheduler.models import ArchivedTask
from scheduler.submission.batches import Progress, read_progress
from scheduler.web_rpcs.documents import Markup

MAX_BATCHES: Final = 1000
"""The most names in one query_batches or query_batch2."""
WRITING: Final = dt.timedelta(minutes=15)
"""Longer than a background task takes to commit what it dated when it began. The time that programs receive for
requesting later changes lies this far back, so that none is missed; a job may be listed twice."""
_REPORTED: Final = (Outcome.SUCCESS, Outcome.CLIENT_ERROR, Outcome.VALIDATE_ERROR)


def query_batches(caller: Caller, request: Element, _now: dt.datetime) -> Reply:
    batches = Batch.objects.filter(owner=caller.user, app__in=caller.app_ids, retired_at=None)
    if request.integer("batch_id"):
        # Of several, a program that asks for one would take the last.
        batches = batches.filter(pk=batch_of(caller, request).pk)
    rows = list(batches.select_related("app").order_by("-pk")[:MAX_BATCHES])[::-1]
    return [("batch", fields) for fields in _batches(rows, with_cpu=request.flag("get_cpu_time"))]


def query_batch(caller: Caller, request: Element, _now: dt.datetime) -> Reply:
    batch = batch_of(caller, request)
    [fields] = _batches([batch], with_cpu=request.flag("get_cpu_time"))
    if request.flag("get_job_details"):
        fields += [("job", _details(job)) for job in _jobs(batch, None)]
    return fields


def query_batch2(caller: Caller, request: Element, now: dt.datetime) -> Reply:
    """Return the changed jobs of each batch, in the order in which the batches were named."""
    names = [element.text for element in request.all("batch_name")]
    if len(names) > MAX_BATCHES:
        raise JobsError(f"{len(names)} batches; the limit is {MAX_BATCHES}")
    since = request.time("min_mod_time")
    reply: Reply = [("server_time", f"{(now - WRITING).timestamp():.6f}")]
    for name in names:
        batch = newest_batch(caller, name)
        if batch is None:
            raise JobsError(f"no batch named {name}")
        jobs = _jobs(batch, since)
        reply.append(("batch_size", len(jobs)))
        reply += [("job", [("job_name", job.name), ("status", short_status(job))]) for job in jobs]
    return reply


def query_job(caller: Caller, request: Element, _now: dt.datetime) -> Reply:
    job = job_numbered(request.integer("job_id"))
    if job is None:
        raise JobsError("no such job")
    check_owner(caller, job.batch, "not owner")
    return [("instance", _instance(result)) for result in _results(job)]


def query_completed_job(caller: Caller, request: Element, _now: dt.datetime) -> Reply:
    job = job_named(request.text_of("job_name"))
    if job is None:
        raise JobsError("no such job")
    check_owner(caller, job.batch, "not owner")
    fields: Reply = [("error_mask", job.error_mask)]
    result = _telling_result(job)
    if result is not None:
        fields += [
            ("canonical_resultid" if result.pk == job.canonical_id else "error_resultid", result.pk),
            ("exit_status", result.exit_status or 0),
            ("elapsed_time", result.elapsed_secs or 0),
            ("cpu_time", result.cpu_secs or 0),
            ("stderr_out", Markup(f"<![CDATA[\n{html.escape(result.stderr_text)}\n]]>")),
        ]
    return [("completed_job", fields)]


def _telling_result(job: Job) -> Result | None:
    """Return the canonical result; of a failed job, the last one that came back; of an open job none."""
    if not job.canonical_id and not job.error_mask:
        return None
    results = _results(job)
    if job.canonical_id:
        return next((result for result in results if result.pk == job.canonical_id), None)
    return next((result for result in reversed(results) if result.outcome in _REPORTED), None)


def _results(job: Job) -> list[Result]:
    if not job.is_archived:
        return list(Result.objects.filter(workunit=job.id).order_by("pk"))
    columns = {field.column: field for field in Result._meta.concrete_fields if not field.is_relation}
    tasks = ArchivedTask.objects.filter(workunit=job.id).order_by("pk")
    return [
        Result(**{columns[name].attname: value for name, value in task.facts.items() if name in columns})
        for task in tasks
    ]


def _instance(result: Result) -> Reply:
    state = instance_state(
        result.server_state, result.outcome, result.validate_state, result.client_state, result.exit_status
    )
    files: Reply = [("outfile", [("size", output["nbytes"])]) for output in result.outputs]
    return [("name", result.name), ("id", result.pk), ("state", state), *files]


def _batches(rows: Sequence[Batch], *, with_cpu: bool) -> list[Reply]:
    ids = [batch.pk for batch in rows]
    with connection.cursor() as cursor:
        cursor.execute(sql.BATCH_FACTS, {"ids": ids})
        facts = {id_: (credit, ended_at) for id_, credit, ended_at in cursor.fetchall()}
        cpu_secs = dict.fromkeys(ids, 0.0)
        if with_cpu:
            cursor.execute(sql.CPU_SECS, {"ids": ids})
            for id_, secs in cursor.fetchall():
                cpu_secs[id_] += secs
    made = [
        _batch(batch, progress, *facts[batch.pk])
        for batch, progress in zip(rows, read_progress(list(rows)), strict=True)
    ]
    if with_cpu:
        for batch, fields in zip(rows, made, strict=True):
            fields.append(("total_cpu_time", cpu_secs[batch.pk]))
    return made


def state_of(batch: Batch, progress: Progress) -> int:
    """Return BOINC's number for a batch's state."""
    if batch.retired_at is not None:
        return 4
    if batch.cancelled_at is not None:
        return 3
    if progress.is_finished:
        return 2
    return 1 if batch.nworkunits else 0


def _batch(batch: Batch, progress: Progress, credit: float, ended_at: dt.datetime | None) -> Reply:
    state = state_of(batch, progress)
    ended = (batch.cancelled_at if state == 3 else ended_at) if state > 1 else None
    nended = progress.ndone + progress.nfailed
    return [
        ("id", batch.pk),
        ("create_time", _secs(batch.created_at)),
        ("expire_time", _secs(batch.expires_at)),
        ("est_completion_time", 0),
        ("njobs", batch.nworkunits),
        ("fraction_done", nended / batch.nworkunits if batch.nworkunits else 0),
        ("nerror_jobs", progress.nfailed),
        ("state", state),
        ("completion_time", _secs(ended)),
        ("credit_estimate", 0),
        ("credit_canonical", credit),
        ("name", batch.name),
        ("app_name", batch.app.name),
    ]


def _secs(at: dt.datetime | None) -> int:
    return int(at.timestamp()) if at is not None else 0


def _jobs(batch: Batch, since: dt.datetime | None) -> list[JobFacts]:
    with connection.cursor() as cursor:
        cursor.execute(sql.JOBS, {"batch": batch.pk, "since": since})
        return [JobFacts(*row) for row in cursor.fetchall()]


def _details(job: JobFacts) -> Reply:
    fields: list[Any] = [("id", job.id), ("name", job.name), ("canonical_instance_id", job.canonical_id)]
    if job.is_failed:
        fields += [("error", name) for name in error_names(job.error_mask)]
        fields += [("exit_status", status) for status in job.exit_statuses or ()]
    if job.canonical_id:
        fields.append(("cpu_time", job.cpu_secs or 0))
    return [*fields, ("status", long_status(job))]
