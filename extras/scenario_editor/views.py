"""The editor's page, and blank scenarios, which begin there."""

from __future__ import annotations

import copy
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from emulator.engine.scenario import CPU, Host, Processor, Project, Scenario
from emulator.models import Experiment
from emulator.pages import reads
from emulator.pages.access import own_experiment
from emulator.runs import experiments
from emulator.runs.experiments import ExperimentRefusedError
from extras.scenario_editor.axis import axis_of
from extras.scenario_editor.fields import GIGA, OFFERED
from extras.scenario_editor.hidden import hidden_of
from extras.scenario_editor.rows import new_app
from extras.scenario_editor.tree import (
    FIELDS_MAX,
    EditorRefusedError,
    act,
    begin,
    count_fields,
    rows_of,
    scenario_from,
    type_in,
)
from portal.people.access import signed_in

BLANK_DAYS: Final = 30.0


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the editor of an experiment that has not been started."""
    experiment = own_experiment(request, pk)
    if experiment.started_at is not None or experiment.scenario is None:
        return redirect("experiment", pk)
    if request.method == "POST":
        return _post(request, pk)
    return _page(request, experiment, _state(experiment))


def _state(experiment: Experiment) -> dict[str, Any]:
    draft: dict[str, Any] | None = experiment.draft.get("editor")
    return draft or begin(reads.scenario_of(experiment), experiment.title, experiment.days)


@transaction.atomic
def _post(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the input, then perform the action."""
    experiment = Experiment.objects.select_for_update().get(pk=pk)
    what = request.POST.get("do", "draft")
    if experiment.started_at is not None:
        return redirect("experiment", pk)
    if what == "discard":
        experiment.draft.pop("editor", None)
        experiment.save(update_fields=["draft"])
        return redirect("experiment_edit", pk)
    state = _state(experiment)
    if request.POST.get("revision") != str(state["revision"]):
        refusal = _("This scenario was changed in another window. Here it is as it is now.")
        return _page(request, experiment, state, refusal=refusal, status=409)
    type_in(state, request.POST)
    refusal, focus = "", ""
    if what == "save":
        rows = rows_of(state)
        scenario = scenario_from(rows)
        if scenario is not None:
            experiments.edited(experiment, scenario, rows.whole.cleaned_data["title"], rows.whole.cleaned_data["days"])
            return redirect("experiment", pk)
    elif what != "draft":
        before = copy.deepcopy(state)
        try:
            focus = act(state, what, request.POST.get("new_event", ""))
        except EditorRefusedError as error:
            state, refusal = before, str(error)
    experiment.draft["editor"] = state
    experiment.save(update_fields=["draft"])
    is_refused = what == "save" or bool(refusal)
    return _page(request, experiment, state, refusal=refusal, focus=focus, status=400 if is_refused else 200)


def _page(
    request: HttpRequest,
    experiment: Experiment,
    state: dict[str, Any],
    *,
    refusal: str = "",
    focus: str = "",
    status: int = 200,
) -> HttpResponse:
    target = request.headers.get("HX-Target")
    if count_fields(state) > FIELDS_MAX:
        context = {"experiment": experiment, "limit": FIELDS_MAX}
        return render(request, "scenario_editor/edit_too_large.html", context)
    rows = rows_of(state)
    scenario = scenario_from(rows)
    context = {
        "experiment": experiment,
        "rows": rows,
        "errors": rows.errors(),
        "revision": state["revision"],
        "axis": axis_of(scenario, rows.whole.cleaned_data["days"], _("Computer")) if scenario is not None else None,
        "is_whole": scenario is not None,
        "is_draft": "editor" in experiment.draft,
        "offered": OFFERED,
        "ntasks": len(state["rest"]["jobs"]),
        "hidden": hidden_of(state),
        "refusal": refusal,
        "focus": focus,
    }
    template = {"editor": "_editor", "saved": "_editor_saved"}.get(target or "", "edit")
    # htmx does not display error responses, and this one has the form with its errors.
    status = status if template == "edit" else 200
    response = render(request, f"scenario_editor/{template}.html", context, status=status)
    response.headers["Vary"] = "HX-Target"
    response.headers["Cache-Control"] = "no-store"
    return response


@require_POST
@login_required
def blank(request: HttpRequest) -> HttpResponse:
    """Start from the smallest scenario that runs: a computer and a project with one application."""
    scenario = Scenario(Host((Processor(CPU, 4, 4 * GIGA),)), (Project("A", 100.0, (new_app(),)),))
    try:
        experiment = experiments.create(signed_in(request), _("My experiment"), "blank", scenario, BLANK_DAYS)
    except ExperimentRefusedError as refusal:
        messages.error(request, str(refusal))
        return redirect("emulator")
    return redirect("experiment_edit", experiment.pk)
