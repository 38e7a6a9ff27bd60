"""Pages for submitters of jobs: their batches, one of them, its jobs and outputs; cancel, retry and retire it."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST, require_safe

from credit.models import Batch
from portal.languages.sentences import sentence
from portal.models import User
from portal.people.access import signed_in
from portal.web.parameters import unknown_parameters
from scheduler.files.views import send
from scheduler.models import KeptOutput
from scheduler.submission import batches, output_archive, retry
from scheduler.submission.forecasts import read_forecast
from scheduler.submission.job_reads import JOB_STATES, read_jobs
from scheduler.wire.job_fields import JobError

SHOWN_BATCHES: Final = 100
SHOWN_OUTPUTS: Final = 200
SHOWN_JOBS: Final = 100


def submitter(request: HttpRequest) -> User:
    """Return the visitor if they may submit jobs; these pages do not exist for others."""
    user = signed_in(request)
    if not batches.may_submit(user):
        raise Http404("no such page")
    return user


def _looker(request: HttpRequest) -> User:
    user = signed_in(request)
    if not batches.may_look(user):
        raise Http404("no such page")
    return user


def _batch(request: HttpRequest, pk: int) -> Batch:
    return get_object_or_404(batches.visible_batches(_looker(request)), pk=pk)


def _own_batch(request: HttpRequest, pk: int) -> Batch:
    """Return a batch that the visitor may change."""
    return get_object_or_404(batches.changeable_batches(_looker(request)), pk=pk)


def _may_change(request: HttpRequest, batch: Batch) -> bool:
    return batches.changeable_batches(_looker(request)).filter(pk=batch.pk).exists()


@require_safe
@login_required
def batch_list(request: HttpRequest) -> HttpResponse:
    """List the progress of the visitor's batches."""
    user = _looker(request)
    shown_batches = list(batches.visible_batches(user)[:SHOWN_BATCHES])
    rows = list(zip(shown_batches, batches.read_progress(shown_batches), strict=True))
    context = {"rows": rows, "most": SHOWN_BATCHES, "may_submit": batches.may_submit(user)}
    return render(request, "scheduler/batches.html", context)


@require_safe
@login_required
def batch_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the progress and the outputs of a batch; only the progress for htmx."""
    batch = _batch(request, pk)
    context = {"batch": batch, "progress": batches.read_progress([batch])[0], "may_change": _may_change(request, batch)}
    if request.headers.get("HX-Request"):
        return render(request, "scheduler/_batch_progress.html", context)
    context |= {
        "forecast": read_forecast(batch, timezone.now()),
        "outputs": batches.read_outputs(batch, limit=SHOWN_OUTPUTS),
        "most": SHOWN_OUTPUTS,
        "nretried": retry.failed(batch).count() if batches.may_submit(signed_in(request)) else 0,
        "narchived": retry.count_archived(batch),
    }
    return render(request, "scheduler/batch.html", context)


@require_safe
@login_required
def batch_jobs(request: HttpRequest, pk: int) -> HttpResponse:
    """List the jobs of a batch, in one state or all."""
    batch = _batch(request, pk)
    state = request.GET.get("state", "")
    after = request.GET.get("after", "0")
    problems = unknown_parameters(request.GET, ("state", "after"))
    if state not in ("", *JOB_STATES):
        problems.append(
            gettext("There are no jobs in the state “%(text)s”. States are: %(known)s. Jobs in all states are shown.")
            % {"text": state[:20], "known": ", ".join(JOB_STATES)}
        )
        state = ""
    if not (after.isdecimal() and len(after) < 19):
        problems.append(
            gettext("“%(text)s” is not the number of a job. The list begins with the first.") % {"text": after[:20]}
        )
        after = "0"
    rows = read_jobs(batch, state, int(after), SHOWN_JOBS + 1)
    context = {
        "batch": batch,
        "problems": problems,
        "rows": rows[:SHOWN_JOBS],
        "next": rows[SHOWN_JOBS - 1].workunit.pk if len(rows) > SHOWN_JOBS else None,
        "state": state,
        "states": JOB_STATES,
        "may_change": _may_change(request, batch),
    }
    return render(request, "scheduler/batch_jobs.html", context)


@require_POST
@login_required
def cancel_batch(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel a batch: nothing more of it is sent, and running jobs are aborted."""
    count = batches.cancel(_own_batch(request, pk), timezone.now())
    messages.success(
        request,
        ngettext(
            "%(number)s workunit was cancelled. Validated results are kept.",
            "%(number)s workunits were cancelled. Validated results are kept.",
            count,
        )
        % {"number": count},
    )
    return redirect("batch", pk)


@require_POST
@login_required
def cancel_jobs(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel some jobs of a batch."""
    batch = _own_batch(request, pk)
    chosen = [int(text) for text in request.POST.getlist("job")[:SHOWN_JOBS] if text.isdecimal() and len(text) < 19]
    count = batches.cancel(batch, timezone.now(), chosen)
    messages.success(
        request,
        gettext("Jobs cancelled: %(number)s. Jobs that had already ended stay as they are.") % {"number": count},
    )
    return redirect("batch_jobs", pk)


@require_POST
@login_required
def retry_batch(request: HttpRequest, pk: int) -> HttpResponse:
    """Submit the failed jobs again, as a separate batch."""
    submitter(request)
    batch = _own_batch(request, pk)
    try:
        again = retry.retry_failed(batch, timezone.now())
    except (retry.NothingToRetry, JobError) as error:
        messages.error(request, gettext("Nothing was submitted. %(reason)s") % {"reason": sentence(error.message)})
        return redirect("batch", pk)
    total = retry.failed(batch).count() + retry.count_archived(batch)
    if again.nworkunits < total:
        messages.warning(
            request,
            gettext("These are %(number)s of %(total)s failed jobs; the others were already archived.")
            % {"number": again.nworkunits, "total": total},
        )
    else:
        messages.success(request, gettext("These are the failed jobs, submitted again."))
    return redirect("batch", again.pk)


@require_POST
@login_required
def retire_batch(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete the outputs of a finished batch."""
    try:
        count = batches.retire(_own_batch(request, pk), timezone.now())
    except batches.NotFinished as error:
        messages.error(request, gettext("Nothing was deleted. %(reason)s") % {"reason": sentence(error.message)})
    else:
        messages.success(request, gettext("Output files deleted: %(number)s.") % {"number": count})
    return redirect("batch", pk)


@require_safe
@login_required
def output(request: HttpRequest, pk: int, output_id: int) -> HttpResponseBase:
    """Send an output file."""
    kept_output = get_object_or_404(KeptOutput, batch=_batch(request, pk), pk=output_id)
    return send(
        request,
        kept_output.path,
        f"{kept_output.workunit_name}_{kept_output.name}",
        kept_output.nbytes,
        kept_output.md5,
    )


@require_safe
@login_required
def output_zip(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Send all outputs that are currently kept, as one archive."""
    batch = _batch(request, pk)
    headers = {
        "Content-Disposition": f'attachment; filename="{batch.app.name}_{batch.pk}.zip"',
        "Cache-Control": "private",
    }
    content = () if request.method == "HEAD" else output_archive.stream(output_archive.of_batch(batch))
    return StreamingHttpResponse(content, content_type="application/zip", headers=headers)
