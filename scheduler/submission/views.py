"""Pages of those who submit jobs: their batches, one of them, its outputs; cancel it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from credit.models import Batch
from portal.models import User
from portal.people.access import signed_in
from scheduler.files.views import send
from scheduler.models import KeptOutput
from scheduler.submission import batches

SHOWN_BATCHES = 100
SHOWN_OUTPUTS = 200


def _submitter(request: HttpRequest) -> User:
    """The visitor, who may submit jobs; for all others these pages do not exist."""
    user = signed_in(request)
    if not batches.may_submit(user):
        raise Http404("no such page")
    return user


def _batch(request: HttpRequest, pk: int) -> Batch:
    return get_object_or_404(batches.visible_batches(_submitter(request)), pk=pk)


@require_safe
@login_required
def batch_list(request: HttpRequest) -> HttpResponse:
    """How far are my batches?"""
    found = list(batches.visible_batches(_submitter(request))[:SHOWN_BATCHES])
    rows = list(zip(found, batches.read_progress(found), strict=True))
    return render(request, "scheduler/batches.html", {"rows": rows, "most": SHOWN_BATCHES})


@require_safe
@login_required
def batch_page(request: HttpRequest, pk: int) -> HttpResponse:
    """The progress and the outputs of a batch."""
    batch = _batch(request, pk)
    outputs = batches.read_outputs(batch, limit=SHOWN_OUTPUTS)
    context = {"batch": batch, "progress": batches.read_progress([batch])[0], "outputs": outputs}
    return render(request, "scheduler/batch.html", context | {"most": SHOWN_OUTPUTS})


@require_POST
@login_required
def cancel_batch(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel a batch: nothing more of it is sent, and running jobs are aborted."""
    count = batches.cancel(_batch(request, pk), timezone.now())
    messages.success(request, f"{count} workunits were cancelled. What was validated before stays.")
    return redirect("batch", pk)


@require_safe
@login_required
def output(request: HttpRequest, pk: int, output_id: int) -> HttpResponseBase:
    """An output file."""
    found = get_object_or_404(KeptOutput, batch=_batch(request, pk), pk=output_id)
    return send(request, found.path, f"{found.workunit_name}_{found.name}", found.nbytes, found.md5)
