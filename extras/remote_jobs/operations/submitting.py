"""Create batches, submit jobs into them, estimate them, show the templates of an app."""

from __future__ import annotations

import datetime as dt
from email.utils import format_datetime
from functools import cache, partial
from typing import Final

from django.db import transaction

from credit.models import App, Batch
from extras.remote_jobs import speeds, staging
from extras.remote_jobs.keys import Caller
from extras.remote_jobs.models import JobTemplate
from extras.remote_jobs.operations.objects import (
    JobsError,
    Reply,
    app_of,
    check_owner,
    job_named,
    numbered_batch,
)
from extras.remote_jobs.wire import job_templates
from extras.remote_jobs.wire.jobs import BatchJobs, RequestError, fpops_in, read_jobs
from extras.remote_jobs.wire.xml_tree import Element, XmlError
from scheduler.submission.fair_shares import highest_priority
from scheduler.submission.submit import submit
from scheduler.web_rpcs.documents import Markup
from scheduler.wire.job_fields import JobError

MAX_NAME_CHARS: Final = 191


def create_batch(caller: Caller, request: Element, now: dt.datetime) -> Reply:
    """Create a batch without jobs. Not safe to repeat, but a name refers to the newest of several batches."""
    app = app_of(caller, request)
    name = _name(caller, app, request, now)
    expires_at = request.time("expire_time")
    batch = Batch.objects.create(app=app, owner=caller.user, name=name, created_at=now, expires_at=expires_at)
    return [("batch_id", batch.pk)]


def _name(caller: Caller, app: App, element: Element, now: dt.datetime) -> str:
    name = element.text_of("batch_name") or f"{caller.user.name[:60]}:{app.name}:{format_datetime(now)}"
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise JobsError(f"Can't create batch: batch_name: not a line of at most {MAX_NAME_CHARS} characters")
    return name


def submit_batch(caller: Caller, request: Element, now: dt.datetime) -> Reply:
    """Submit jobs for a batch that has none, or for a new one; all of them or none."""
    element = request.first("batch")
    if element is None:
        raise JobsError("no <batch>")
    number = element.integer("batch_id")
    batch = numbered_batch(number) if number else None
    if batch is not None and not element.text_of("app_name"):
        check_owner(caller, batch, "not owner of batch")
        app = batch.app
    else:
        app = app_of(caller, element)
    batch_jobs = read_jobs(element, partial(_template_text, app))
    if number and batch is None:
        raise JobsError(f"no batch {number}")
    if batch is not None:
        check_owner(caller, batch, "not owner of batch")
        if batch.app_id != app.pk:
            raise JobsError(f"batch {number} is of another app")
        _check_open(batch, element)
    try:
        return [("batch_id", _submit(caller, app, batch, element, batch_jobs, now).pk)]
    except JobError as error:
        raise JobsError(f"create_work failed: {error}") from error


def _check_open(batch: Batch, element: Element) -> None:
    if batch.cancelled_at or batch.retired_at or (batch.nworkunits and not element.flag("append")):
        raise JobsError("batch not in init state")


@transaction.atomic
def _submit(
    caller: Caller, app: App, batch: Batch | None, element: Element, batch_jobs: BatchJobs, now: dt.datetime
) -> Batch:
    """Submit. Locks the batch, the submitter, and the files that jobs name."""
    if batch is None:
        name = _name(caller, app, element, now)
        batch = Batch.objects.create(app=app, owner=caller.user, name=name, created_at=now)
    else:
        # Of two submissions into one batch the second waits, and finds the jobs of the first.
        batch = Batch.objects.select_for_update(no_key=True).get(pk=batch.pk)
        _check_open(batch, element)
    if not batch_jobs.jobs:
        return batch
    # Programs of BOINC's server may ask for any priority, and take a refusal for a failure.
    highest = highest_priority(caller.user)
    jobs = [
        {"name": f"{app.name}_{batch.pk}_{number}", **job, "priority": min(job["priority"], highest)}
        for number, job in enumerate(batch_jobs.jobs, batch.nworkunits)
    ]
    batch, _ = submit(app, {}, jobs, owner=caller.user, into=batch, exact_names=True, now=now)
    staging.need(batch_jobs.staged, batch)
    return batch


def estimate_batch(caller: Caller, request: Element, now: dt.datetime) -> Reply:
    """Estimate how long the app would need for the jobs alone, at the speed implied by its granted credit."""
    element = request.first("batch")
    if element is None:
        raise JobsError("no <batch>")
    app = app_of(caller, element)

    @cache
    def of_template() -> dict[str, float] | None:
        text = _template_text(app, "in", element.text_of("input_template_filename"))
        return dict(job_templates.read_input(text).fields) if text is not None else None

    try:
        return [("seconds", fpops_in(element, of_template) / speeds.flops(now, app))]
    except XmlError as error:
        raise RequestError(str(error)) from error


def get_templates(caller: Caller, request: Element, _now: dt.datetime) -> Reply:
    """Return both templates of an app, or of the app of a job."""
    if request.text_of("app_name"):
        app = app_of(caller, request)
    else:
        name = request.text_of("job_name")
        job = job_named(name)
        if job is None or job.batch is None:
            raise JobsError(f"job not found: {name}")
        check_owner(caller, job.batch, "not owner of batch")
        app = job.batch.app
    texts = [_template_text(app, kind, "") for kind in ("in", "out")]
    if None in texts:
        raise JobsError("template file missing")
    # Programs look for the outer elements, which a file need not have.
    whole = (_whole(text or "", tag) for text, tag in zip(texts, ("input_template", "output_template"), strict=True))
    return [("templates", Markup("\n".join(whole)))]


def _whole(text: str, tag: str) -> str:
    text = job_templates.without_declaration(text).strip()
    return text if text.startswith(f"<{tag}>") else f"<{tag}>\n{text}\n</{tag}>"


def _template_text(app: App, kind: str, name: str) -> str | None:
    templates = JobTemplate.objects.filter(app=app, kind=kind, name=name or f"{app.name}_{kind}")
    return templates.values_list("text", flat=True).first()
