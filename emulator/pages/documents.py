"""Scenarios as documents: download, upload, and the published schema."""

from __future__ import annotations

from pathlib import PurePath

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from emulator.engine.scenario import ScenarioError
from emulator.files.scenario_json import DOCUMENT_BYTES_MAX, Document, document_json, read_document
from emulator.files.scenario_schema import document_schema
from emulator.models import DAYS_MAX
from emulator.pages import reads
from emulator.pages.access import own_experiment
from emulator.runs import experiments
from emulator.runs.experiments import ExperimentRefusedError
from portal.languages.sentences import sentence
from portal.people.access import signed_in


class DocumentForm(forms.Form):
    """A scenario as JSON."""

    document = forms.FileField(label="JSON")


@require_POST
@login_required
def from_json_file(request: HttpRequest) -> HttpResponse:
    """Start from a JSON file made by a run's page, the editor or a program."""
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


@require_safe
@login_required
def scenario_json(request: HttpRequest, pk: int) -> HttpResponse:
    """The scenario as it was last saved, as a document."""
    experiment = own_experiment(request, pk)
    if experiment.scenario is None:
        raise Http404("no scenario yet")
    document = Document(reads.scenario_of(experiment), experiment.days)
    name = f"{slugify(experiment.title) or 'scenario'}.json"
    return JsonResponse(
        {"$schema": schema_address(), "experiment": experiment.title, **document_json(document)},
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
