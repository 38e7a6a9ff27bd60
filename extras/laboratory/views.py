"""The public laboratory, where operators open it: small experiments of volunteers, shared by a link."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from extras.laboratory import request as requests
from extras.laboratory.forms import ExperimentForm, initial_of
from extras.laboratory.models import CreditExperiment
from extras.laboratory.reads import download, page_of
from extras.laboratory.request import ExperimentRefusedError
from portal.people.access import signed_in


def _where_public(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Raise 404 unless the operator has opened the laboratory."""

    @wraps(view)
    def checked(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if not settings.CREDIT_LABORATORY_PUBLIC:
            raise Http404("the laboratory is not public")
        return view(request, *args, **kwargs)

    return checked


def _own(request: HttpRequest, pk: int) -> CreditExperiment:
    return get_object_or_404(CreditExperiment, pk=pk, owner=signed_in(request))


@require_safe
@_where_public
@login_required
def overview(request: HttpRequest) -> HttpResponse:
    """The visitor's experiments."""
    experiments = CreditExperiment.objects.filter(owner=signed_in(request)).defer("results")
    return render(request, "laboratory/overview.html", {"experiments": experiments})


@require_http_methods(["GET", "HEAD", "POST"])
@_where_public
@login_required
def new(request: HttpRequest) -> HttpResponse:
    """Describe an experiment, or a changed copy of one (``?from=``), and start it."""
    user = signed_in(request)
    form = experiment_form(request, CreditExperiment.objects.filter(owner=user), is_operator=False)
    experiment = ask(form, request, is_operator=False)
    if experiment is not None:
        return redirect("credit_experiment", experiment.pk)
    return render(request, "laboratory/new.html", {"form": form}, status=422 if form.is_bound else 200)


def experiment_form(request: HttpRequest, readable: QuerySet[CreditExperiment], *, is_operator: bool) -> ExperimentForm:
    """Return the form as it was sent, empty, or with the settings of an experiment among the ``readable`` ones."""
    if request.method == "POST":
        return ExperimentForm(request.POST, is_operator=is_operator)
    template_pk = request.GET.get("from", "")
    if not (template_pk.isascii() and template_pk.isdigit() and len(template_pk) < 19):
        return ExperimentForm(is_operator=is_operator)
    template = get_object_or_404(readable, pk=int(template_pk))
    initial = {
        "title": (gettext("%(title)s, changed") % {"title": template.title})[:100],
        **initial_of(template.settings),
    }
    return ExperimentForm(initial=initial, is_operator=is_operator)


def ask(form: ExperimentForm, request: HttpRequest, *, is_operator: bool) -> CreditExperiment | None:
    """Start the submitted experiment; None if there are errors, which the form then has."""
    if not form.is_bound or not form.is_valid():
        return None
    data = form.cleaned_data
    try:
        return requests.ask(signed_in(request), data["title"], data["experiment"], is_operator=is_operator)
    except ExperimentRefusedError as error:
        form.add_error(None, str(error))
        return None


@require_safe
@_where_public
@login_required
def experiment(request: HttpRequest, pk: int) -> HttpResponse:
    """One of the visitor's experiments."""
    return _page(request, _own(request, pk), is_owner=True)


@require_safe
def shared(request: HttpRequest, key: str) -> HttpResponse:
    """An experiment as everybody with the link sees it."""
    return _page(request, _shared(key), is_owner=False)


def _shared(key: str) -> CreditExperiment:
    # PostgreSQL has no text with NUL.
    experiment = get_object_or_404(CreditExperiment.objects.select_related("owner"), share_token=key.replace("\0", " "))
    if not requests.may_be_shared(experiment):
        raise Http404("the laboratory is not public")
    return experiment


def _page(request: HttpRequest, experiment: CreditExperiment, *, is_owner: bool) -> HttpResponse:
    part = "_experiment.html" if request.headers.get("HX-Request") else "experiment.html"
    context = {**page_of(experiment, timezone.now()), "is_owner": is_owner}
    response = render(request, f"laboratory/{part}", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_safe
@_where_public
@login_required
def result_json(request: HttpRequest, pk: int) -> HttpResponse:
    return JsonResponse(download(_own(request, pk)))


@require_safe
def shared_json(request: HttpRequest, key: str) -> HttpResponse:
    return JsonResponse(download(_shared(key)))


@require_POST
@_where_public
@login_required
def share(request: HttpRequest, pk: int) -> HttpResponse:
    """Share it by a link, or stop sharing."""
    (requests.unshare if "end" in request.POST else requests.share)(_own(request, pk))
    return redirect("credit_experiment", pk)


@require_POST
@_where_public
@login_required
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    requests.delete(_own(request, pk))
    return redirect("credit_laboratory")
