"""Pages that add and delete comments on experiments."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from emulator.engine.scenario import DAY_SECS
from emulator.models import Comment, Experiment, Run
from emulator.pages.access import readable_experiment
from emulator.pages.discussion import CommentForm
from emulator.pages.run_views import run_page
from emulator.pages.views import results_page
from emulator.runs import comments
from emulator.runs.experiments import ExperimentRefusedError
from portal.people.access import signed_in


@require_POST
@login_required
def add(request: HttpRequest, key: str) -> HttpResponse:
    """Say something about an experiment that the visitor may see."""
    found = readable_experiment(request, key)
    user = signed_in(request)
    if not comments.may_comment(found, user):
        raise Http404("comments are about what was run")
    form = CommentForm(request.POST)
    is_valid = form.is_valid()
    data = form.cleaned_data
    run = get_object_or_404(Run, experiment=found, number=data["run"]) if data.get("run") else None
    if not is_valid:
        return _again(request, found, run, key, form)
    at_secs = None if run is None or data["day"] is None else min(data["day"], found.days) * DAY_SECS
    try:
        comments.add(found, user, data["text"], run, at_secs, timezone.now())
    except ExperimentRefusedError as refusal:
        form.add_error(None, str(refusal))
        return _again(request, found, run, key, form)
    return redirect(_page(found, key, run))


def _again(request: HttpRequest, found: Experiment, run: Run | None, key: str, form: CommentForm) -> HttpResponse:
    """The page with what was typed and why it was not taken."""
    if run is None:
        return results_page(request, found, key, form)
    return run_page(request, found, run, key, form)


@require_POST
@login_required
def delete(request: HttpRequest, key: str, pk: int) -> HttpResponse:
    """Delete a comment; again does no harm."""
    found = readable_experiment(request, key)
    comment = Comment.objects.select_related("experiment", "run").filter(experiment=found, pk=pk).first()
    if comment is None:
        return redirect(_page(found, key, None))
    if not comments.may_delete(comment, signed_in(request)):
        raise Http404("not theirs")
    comment.delete()
    return redirect(_page(found, key, comment.run))


def _page(found: Experiment, key: str, run: Run | None) -> str:
    if run is not None:
        address = reverse("emulator_run", args=[key, run.number])
    elif key.isdigit():
        address = reverse("experiment", args=[found.pk])
    else:
        address = reverse("experiment_shared", args=[key])
    return f"{address}#comments"
