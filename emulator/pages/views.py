"""Pages of experiments: the list, the starting points, the set-up, and the results."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from emulator.engine.policies.registry import policy_notes
from emulator.engine.scenario import Scenario, ScenarioError
from emulator.files.presets import preset
from emulator.models import Experiment, RunState
from emulator.pages import examples, reads
from emulator.pages.access import own_experiment, readable_experiment
from emulator.pages.drafts import changed
from emulator.pages.forms import UPLOAD_BYTES_MAX, ComputerForm, TrialForm, UploadForm, trial_initial
from emulator.pages.host_scenario import scenario_of
from emulator.pages.run_views import VARY, run_page
from emulator.pages.texts import preset_texts
from emulator.pages.texts.answer import answer_of
from emulator.pages.texts.verdicts import best_of
from emulator.pages.visitor import is_owner, of_the_visitor
from emulator.runs import estimate, experiments, worker
from emulator.runs.experiments import ExperimentRefusedError
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.people.access import get_own_host, own_hosts, signed_in

FORM_BYTES_MAX: Final = 64 * 1024  # size of a form, besides the files
DEFAULT_DAYS: Final = 30.0


# --- the list, and the starting points ----------------------------------------------------------------------


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """The user's experiments, and starting points for new ones; for strangers the examples."""
    if not request.user.is_authenticated:
        return render(request, "emulator/examples.html", examples.offered())
    return _overview(request)


def _overview(request: HttpRequest, form: ComputerForm | None = None, upload: UploadForm | None = None) -> HttpResponse:
    user = signed_in(request)
    context = {
        "experiments": reads.with_origins(reads.read_experiments(user), user),
        "hosts": own_hosts(user).filter(retired_at=None).order_by("-last_contact_at")[:50],
        **examples.offered(),
        "form": form or ComputerForm(),
        "upload_form": upload or UploadForm(),
        "kept_max": settings.EMULATOR_EXPERIMENTS_MAX,
    }
    return render(request, "emulator/overview.html", context, status=400 if form or upload else 200)


@require_safe
def example(request: HttpRequest, key: str) -> HttpResponse:
    """The finished run of one of the examples, for anybody."""
    return results_page(request, examples.example_experiment(key), f"{examples.PREFIX}{key}")


@require_POST
@login_required
def from_preset(request: HttpRequest, key: str) -> HttpResponse:
    """Start from one of the examples: change it, and run it."""
    try:
        example = preset(key)
    except KeyError:
        raise Http404("no such preset") from None
    return _create(request, preset_texts.title_of(example), f"example:{example.key}", example.scenario, example.days)


@require_POST
@login_required
def from_computer(request: HttpRequest, pk: int) -> HttpResponse:
    """Start from one of the visitor's computers."""
    host = get_own_host(request.user, pk)
    try:
        scenario = scenario_of(signed_in(request), host, timezone.now())
    except ScenarioError as error:
        messages.error(
            request, _("This computer cannot be emulated yet: %(reason)s.") % {"reason": sentence(error.why)}
        )
        return redirect("emulator")
    title = _("My computer: %(processors)s") % {"processors": reads.processors_text(scenario)}
    return _create(request, title, f"computer:{host.pk}", scenario, DEFAULT_DAYS)


@require_POST
@login_required
def from_form(request: HttpRequest) -> HttpResponse:
    """Start from a description."""
    form = ComputerForm(request.POST)
    if not form.is_valid():
        return _overview(request, form=form)
    data = form.cleaned_data
    return _create(request, data["title"], "form", data["scenario"], DEFAULT_DAYS)


@require_POST
@login_required
def from_files(request: HttpRequest) -> HttpResponse:
    """Start from a client's own files; a worker reads them."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > UPLOAD_BYTES_MAX + FORM_BYTES_MAX:
        messages.error(request, _("These files are too large. The limit for all together is 32 MiB."))
        return redirect("emulator")
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _overview(request, upload=form)
    try:
        experiment = experiments.create(signed_in(request), _("My client"), "files", None, DEFAULT_DAYS)
    except ExperimentRefusedError as refusal:
        messages.error(request, str(refusal))
        return redirect("emulator")
    worker.store_upload(experiment, form.archive_bytes())
    return redirect("experiment", experiment.pk)


def _create(request: HttpRequest, title: str, origin: str, scenario: Scenario, days: float) -> HttpResponse:
    try:
        experiment = experiments.create(signed_in(request), title, origin, scenario, days)
    except ExperimentRefusedError as refusal:
        messages.error(request, str(refusal))
        return redirect("emulator")
    return redirect("experiment", experiment.pk)


# --- an experiment -------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def experiment(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the set-up before the start, and the results afterwards."""
    own = own_experiment(request, pk)
    if own.started_at is not None:
        return results_page(request, own, str(pk))
    if own.scenario is None:
        standing = reads.upload_standing(own, timezone.now())
        return render(
            request,
            "emulator/reading.html",
            {"experiment": own, "standing": standing, "fault": sentence(own.fault)},
        )
    scenario = reads.scenario_of(own)
    initial = {"title": own.title, "days": own.days, **trial_initial(own.draft.get("trial"))}
    if request.method != "POST":
        return _set_up(request, own, scenario, TrialForm(scenario, initial=initial))
    form = TrialForm(scenario, request.POST, request.FILES)
    if not form.is_valid():
        return _set_up(request, own, scenario, form)
    return _start(request, own, scenario, form)


def _set_up(request: HttpRequest, own: Experiment, scenario: Scenario, form: TrialForm) -> HttpResponse:
    user = signed_in(request)
    context = {
        "experiment": own,
        "scenario": scenario,
        "notes": [sentence(note) for note in scenario.notes],
        "unused": [(row, sentence(Message(row.why))) for row in scenario.unused],
        "at_start": reads.at_start(scenario),
        "origin": reads.origin_of(own, user),
        "form": form,
        "processors": reads.processors_text(scenario),
        "is_edited": "editor" in own.draft,
    }
    return render(request, "emulator/set_up.html", context, status=400 if form.errors else 200)


@require_POST
@login_required
def estimate_runs(request: HttpRequest, pk: int) -> HttpResponse:
    """Estimate how long the runs of the set-up form will take; nothing while it has errors, or if they have started
    meanwhile.
    """
    own = own_experiment(request, pk)
    if own.scenario is None:
        raise Http404("nothing to set up")
    form = TrialForm(reads.scenario_of(own), request.POST)
    context: dict[str, Any] = {"estimate": None}
    if own.started_at is None and form.is_valid():
        context["estimate"] = reads.estimate(form, settings.EMULATOR_RUN_SECS_MAX)
    return render(request, "emulator/_estimate.html", context)


def _start(request: HttpRequest, own: Experiment, scenario: Scenario, form: TrialForm) -> HttpResponse:
    data = form.cleaned_data
    try:
        experiments.start(
            own,
            changed(scenario, form.change()),
            title=data["title"],
            days=data["days"],
            variants=form.variants(),
            seeds=form.seeds(),
            parameter=data["parameter"],
            now=timezone.now(),
        )
    except (ExperimentRefusedError, ScenarioError) as refusal:
        form.add_error(None, sentence(refusal.message) if isinstance(refusal, ScenarioError) else str(refusal))
        return _set_up(request, own, scenario, form)
    return redirect("experiment", own.pk)


@require_safe
def shared(request: HttpRequest, key: str) -> HttpResponse:
    """The results of an experiment that its owner shared."""
    readable = readable_experiment(request, key)
    return results_page(request, readable, key)


def results_page(request: HttpRequest, readable: Experiment, key: str) -> HttpResponse:
    """Render the results of an experiment, or its progress."""
    runs = reads.read_runs(readable)
    unfinished = reads.is_unfinished(runs)
    asks_progress = request.headers.get("HX-Target") == "progress"
    if asks_progress and not unfinished:
        # The page has more to show than the progress now.
        return HttpResponse(headers={"HX-Refresh": "true", "Vary": VARY})
    rows = reads.variants(runs)
    if not unfinished and len(runs) == 1 and runs[0].state == RunState.DONE:
        response = run_page(request, readable, runs[0], key)
        response.headers["Vary"] = VARY
        return response
    scenario = reads.scenario_of(readable)
    owner = signed_in(request) if is_owner(request, readable) else None
    notes = dict.fromkeys(note for row in rows for note in policy_notes(row.first.policy, scenario))
    context = {
        "experiment": readable,
        "origin": reads.origin_of(readable, owner),
        "key": key,
        "runs": runs,
        "is_unfinished": unfinished,
        "waiting": reads.waiting(runs, timezone.now()) if unfinished else None,
        "progress": reads.progress(runs),
        "is_compiling": unfinished and bool(cache.get(worker.COMPILING_KEY)),
        "remaining_secs": estimate.remaining_secs(runs, timezone.now()) if unfinished else None,
        "rows": rows,
        "names": runs[0].projects and [row["name"] for row in runs[0].projects],
        "figures": {name: reads.FIGURES[name] for name in reads.figures_of(runs)},
        # For an example both policies' diagnoses; otherwise the first run's, as only that one tries changes.
        "answers": [
            (run, answer_of(run.answer, has_names=owner is not None))
            for run in (runs if examples.example_of(readable) else runs[:1])
        ],
        "best": [(reads.FIGURES[name][0], best) for name, best in best_of(rows).items()],
        "faults": reads.faults(runs),
        "has_differences": any(row.differences for row in rows),
        "has_figures": any(row.figures for row in rows),
        "charts": reads.charts(readable, rows),
        "processors": reads.processors_text(scenario),
        "notes": [sentence(note) for note in notes],
        **of_the_visitor(request, readable),
    }
    template = "emulator/_progress.html" if asks_progress else "emulator/results.html"
    response = render(request, template, context)
    response.headers["Vary"] = VARY
    return response


@require_POST
@login_required
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Try something else with the same scenario."""
    own = own_experiment(request, pk)
    if own.scenario is None:
        raise Http404("no scenario to copy")
    try:
        return redirect("experiment", experiments.copy(own, own.owner).pk)
    except ExperimentRefusedError as refusal:
        messages.error(request, str(refusal))
        return redirect("experiment", pk)


@require_POST
@login_required
def fork(request: HttpRequest, key: str) -> HttpResponse:
    """Try something else with the scenario of an experiment that another person shared."""
    readable = readable_experiment(request, key)
    try:
        return redirect("experiment", experiments.copy(readable, signed_in(request)).pk)
    except ExperimentRefusedError as refusal:
        messages.error(request, str(refusal))
        return redirect("experiment_shared", key)


@require_POST
@login_required
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    experiments.cancel(own_experiment(request, pk), timezone.now())
    return redirect("experiment", pk)


@require_POST
@login_required
def share(request: HttpRequest, pk: int) -> HttpResponse:
    own = own_experiment(request, pk)
    if "end" in request.POST:
        experiments.unshare(own)
        messages.success(request, _("The link no longer works."))
    else:
        experiments.share(own)
        messages.success(
            request,
            _(
                "Anyone with the link below can see this experiment: the hardware, the projects and their shares, the "
                "preferences, and when the computer is on. Its name and the names of its tasks are left out."
            ),
        )
    return redirect("experiment", pk)


@require_POST
@login_required
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    own = own_experiment(request, pk)
    experiments.delete(own)
    messages.success(request, _("“%(title)s” was deleted.") % {"title": own.title})
    return redirect("emulator")
