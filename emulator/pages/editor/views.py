"""The editor's page, and scenarios as files: download, upload, blank ones, and the published schema."""

from __future__ import annotations

import copy
from pathlib import PurePath
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from emulator.engine.scenario import CPU, Host, Processor, Project, Scenario, ScenarioError
from emulator.files.scenario_json import DOCUMENT_BYTES_MAX, Document, document_json, read_document
from emulator.files.scenario_schema import document_schema
from emulator.models import DAYS_MAX, Experiment
from emulator.pages import reads
from emulator.pages.access import own_experiment
from emulator.pages.editor.axis import axis_of
from emulator.pages.editor.fields import GIGA, OFFERED
from emulator.pages.editor.hidden import hidden_of
from emulator.pages.editor.rows import new_app
from emulator.pages.editor.tree import (
    FIELDS_MAX,
    EditorRefusedError,
    act,
    begin,
    count_fields,
    rows_of,
    scenario_from,
    type_in,
)
from emulator.runs import experiments
from emulator.runs.experiments import ExperimentRefusedError
from portal.languages.sentences import sentence
from portal.people.access import signed_in

BLANK_DAYS: Final = 30.0


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """The editor of an experiment that was not started."""
    found = own_experiment(request, pk)
    if found.started_at is not None or found.scenario is None:
        return redirect("experiment", pk)
    if request.method == "POST":
        return _post(request, pk)
    return _page(request, found, _state(found))


def _state(found: Experiment) -> dict[str, Any]:
    kept: dict[str, Any] | None = found.draft.get("editor")
    return kept or begin(reads.scenario_of(found), found.title, found.days)


@transaction.atomic
def _post(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep what was typed, then do what was asked for."""
    found = Experiment.objects.select_for_update().get(pk=pk)
    what = request.POST.get("do", "draft")
    if found.started_at is not None:
        return redirect("experiment", pk)
    if what == "discard":
        found.draft.pop("editor", None)
        found.save(update_fields=["draft"])
        return redirect("experiment_edit", pk)
    state = _state(found)
    if request.POST.get("revision") != str(state["revision"]):
        refusal = _("This scenario was changed in another window. Here it is as it is now.")
        return _page(request, found, state, refusal=refusal, status=409)
    type_in(state, request.POST)
    refusal, focus = "", ""
    if what == "save":
        rows = rows_of(state)
        scenario = scenario_from(state, rows)
        if scenario is not None:
            experiments.edited(found, scenario, rows.whole.cleaned_data["title"], rows.whole.cleaned_data["days"])
            return redirect("experiment", pk)
    elif what != "draft":
        before = copy.deepcopy(state)
        try:
            focus = act(state, what, request.POST.get("new_event", ""))
        except EditorRefusedError as error:
            state, refusal = before, str(error)
    found.draft["editor"] = state
    found.save(update_fields=["draft"])
    is_refused = what == "save" or bool(refusal)
    return _page(request, found, state, refusal=refusal, focus=focus, status=400 if is_refused else 200)


def _page(
    request: HttpRequest,
    found: Experiment,
    state: dict[str, Any],
    *,
    refusal: str = "",
    focus: str = "",
    status: int = 200,
) -> HttpResponse:
    target = request.headers.get("HX-Target")
    if count_fields(state) > FIELDS_MAX:
        context = {"experiment": found, "limit": FIELDS_MAX}
        return render(request, "emulator/edit_too_large.html", context)
    rows = rows_of(state)
    scenario = scenario_from(state, rows)
    context = {
        "experiment": found,
        "rows": rows,
        "errors": rows.errors(),
        "revision": state["revision"],
        "axis": axis_of(scenario, rows.whole.cleaned_data["days"], _("Computer")) if scenario is not None else None,
        "is_whole": scenario is not None,
        "is_draft": "editor" in found.draft,
        "offered": OFFERED,
        "ntasks": len(state["rest"]["jobs"]),
        "hidden": hidden_of(state),
        "refusal": refusal,
        "focus": focus,
    }
    template = {"editor": "emulator/_editor.html", "saved": "emulator/_editor_saved.html"}.get(target or "")
    # htmx shows no answer that says it failed, and this one has the form with its errors.
    response = render(request, template or "emulator/edit.html", context, status=200 if template else status)
    response.headers["Vary"] = "HX-Target"
    response.headers["Cache-Control"] = "no-store"
    return response


# Files.


class DocumentForm(forms.Form):
    """A scenario as JSON."""

    document = forms.FileField(label="JSON")


@require_POST
@login_required
def from_json_file(request: HttpRequest) -> HttpResponse:
    """Start from a JSON file: one that a run's page, the editor or a program has made."""
    form = DocumentForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, _("Choose a JSON file."))
        return redirect("emulator")
    file = form.cleaned_data["document"]
    try:
        document = read_document(file.read(DOCUMENT_BYTES_MAX + 1))
        if document.days > DAYS_MAX or document.days < 0.01:
            raise ScenarioError("days", "not_in_range", value=document.days, low=0.01, high=DAYS_MAX)
        title = PurePath(file.name).stem or _("Scenario")
        experiment = experiments.create(
            signed_in(request), title, "json", document.applied(), document.days, experiments.trial_of(document)
        )
    except ScenarioError as error:
        messages.error(request, _("This file cannot be used. %(reason)s") % {"reason": sentence(error.message)})
        return redirect("emulator")
    except ExperimentRefusedError as refusal:
        messages.error(request, str(refusal))
        return redirect("emulator")
    return redirect("experiment", experiment.pk)


@require_POST
@login_required
def blank(request: HttpRequest) -> HttpResponse:
    """Start from the least that can run: a computer and a project with one application."""
    scenario = Scenario(Host((Processor(CPU, 4, 4 * GIGA),)), (Project("A", 100.0, (new_app(),)),))
    try:
        experiment = experiments.create(signed_in(request), _("My experiment"), "blank", scenario, BLANK_DAYS)
    except ExperimentRefusedError as refusal:
        messages.error(request, str(refusal))
        return redirect("emulator")
    return redirect("experiment_edit", experiment.pk)


@require_safe
@login_required
def scenario_json(request: HttpRequest, pk: int) -> HttpResponse:
    """The scenario as it was last saved, as a document."""
    found = own_experiment(request, pk)
    if found.scenario is None:
        raise Http404("no scenario yet")
    document = Document(reads.scenario_of(found), found.days)
    name = f"{slugify(found.title) or 'scenario'}.json"
    return JsonResponse(
        {"$schema": schema_address(), "experiment": found.title, **document_json(document)},
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"},
        json_dumps_params={"indent": 1},
    )


def schema_address() -> str:
    """The schema's address on this site."""
    return f"{settings.SITE_URL.rstrip('/')}{reverse('scenario_schema')}"


@require_safe
def scenario_schema(request: HttpRequest) -> HttpResponse:
    """The JSON Schema of documents, for programs and text editors."""
    return JsonResponse(
        document_schema(schema_address()),
        content_type="application/schema+json",
        headers={"Cache-Control": "public, max-age=3600", "Access-Control-Allow-Origin": "*"},
        json_dumps_params={"indent": 1},
    )
