"""Pages for submitting jobs: the form, the dry run, the submission."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.languages.sentences import sentence
from scheduler.models import SubmissionDraft
from scheduler.submission import drafts
from scheduler.submission.forms import SHOWN_FIRST, JobsForm
from scheduler.submission.views import submitter


def _draft(request: HttpRequest, pk: int) -> SubmissionDraft:
    """Return the user's own draft; 404 for anybody else's."""
    drafts = SubmissionDraft.objects.select_related("app", "batch", "owner")
    return get_object_or_404(drafts, pk=pk, owner=submitter(request))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_batch(request: HttpRequest) -> HttpResponse:
    """Enter the jobs to submit."""
    user = submitter(request)
    form = JobsForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            draft = drafts.keep(
                user,
                given["app"],
                form.upload,
                is_archive=form.is_archive,
                name=given["name"],
                open_name=given["open_name"],
                defaults=form.defaults,
                now=timezone.now(),
            )
        except drafts.UploadRefused as refused:
            form.add_faults(refused.faults)
        else:
            return redirect("batch_draft", draft.pk)
    columns = ", ".join((*(field.name for field in form.parts()[1]), *SHOWN_FIRST))
    status = 422 if form.errors else 200
    return render(request, "scheduler/batch_new.html", {"form": form, "columns": columns}, status=status)


@require_safe
@login_required
def batch_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what would be created from these jobs."""
    draft = _draft(request, pk)
    if draft.batch is not None:
        return redirect("batch", draft.batch.pk)
    run = drafts.dry_run(draft, timezone.now())
    return render(request, "scheduler/batch_draft.html", {"draft": draft, "run": run, "faults": run.faults})


@require_POST
@login_required
def submit_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Submit the jobs of a draft, once however often it is requested."""
    draft = _draft(request, pk)
    try:
        batch = drafts.submit_draft(draft, timezone.now())
    except drafts.DraftError as error:
        messages.error(request, gettext("Nothing was submitted. %(reason)s") % {"reason": sentence(error.message)})
        return redirect("batch_draft", draft.pk)
    return redirect("batch", batch.pk)


@require_POST
@login_required
def discard_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Discard the upload."""
    drafts.discard(_draft(request, pk))
    return redirect("batches")
