"""The emulator's pages. Whoever owns an experiment addresses it by its number; whoever was given its link, by that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from emulator import tasks
from emulator.engine.scenario import Scenario, ScenarioError
from emulator.files.presets import PRESETS, preset
from emulator.models import Experiment, Run, RunState
from emulator.pages import downloads
from emulator.pages import reads as pages_reads
from emulator.pages.drafts import changed
from emulator.pages.forms import ComputerForm, TrialForm, UploadForm
from emulator.pages.host_scenario import scenario_of
from emulator.pages.window import WIDTH_MAX, window
from emulator.runs import experiments, worker
from emulator.runs.experiments import Refused
from emulator.runs.packed_timeline import Packed
from portal.people.access import get_own_host, own_hosts, signed_in

UPLOAD_BYTES_MAX: Final = 32 * 1024 * 1024
ROWS_A_PAGE: Final = 100
DEFAULT_DAYS: Final = 30.0
# One address, a page or a part of it: a cache must not hand out the one as the other.
_VARY: Final = "Cookie, HX-Target"


# --- what one has, and where one starts --------------------------------------------------------------------


@require_safe
@login_required
def overview(request: HttpRequest) -> HttpResponse:
    """What did I try, and what can I start from?"""
    return _overview(request)


def _overview(request: HttpRequest, form: ComputerForm | None = None, upload: UploadForm | None = None) -> HttpResponse:
    user = signed_in(request)
    context = {
        "experiments": pages_reads.read_experiments(user),
        "hosts": own_hosts(user).filter(retired_at=None).order_by("-last_contact_at")[:50],
        "presets": PRESETS,
        "form": form or ComputerForm(),
        "upload_form": upload or UploadForm(),
        "kept_max": settings.EMULATOR_EXPERIMENTS_MAX,
    }
    return render(request, "emulator/overview.html", context, status=400 if form or upload else 200)


@require_POST
@login_required
def from_preset(request: HttpRequest, key: str) -> HttpResponse:
    """Start from one of the examples."""
    try:
        found = preset(key)
    except KeyError:
        raise Http404("no such preset") from None
    return _create(request, found.title, f"example “{found.title}”", found.scenario, found.days)


@require_POST
@login_required
def from_computer(request: HttpRequest, pk: int) -> HttpResponse:
    """Start from one of the visitor's computers."""
    host = get_own_host(request.user, pk)
    try:
        scenario = scenario_of(signed_in(request), host, timezone.now())
    except ScenarioError as error:
        messages.error(request, f"This computer cannot be emulated yet: {error.why}.")
        return redirect("emulator")
    return _create(request, host.name, f"your computer {host.name}", scenario, DEFAULT_DAYS)


@require_POST
@login_required
def from_form(request: HttpRequest) -> HttpResponse:
    """Start from a description."""
    form = ComputerForm(request.POST)
    if not form.is_valid():
        return _overview(request, form=form)
    data = form.cleaned_data
    return _create(request, data["title"], "a description", data["scenario"], DEFAULT_DAYS)


@require_POST
@login_required
def from_files(request: HttpRequest) -> HttpResponse:
    """Start from a client's own files; a worker reads them."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > UPLOAD_BYTES_MAX:
        messages.error(request, "These files are too large: a client_state.xml may have 16 MiB.")
        return redirect("emulator")
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _overview(request, upload=form)
    try:
        experiment = experiments.create(signed_in(request), "My client", "uploaded files", None, DEFAULT_DAYS)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("emulator")
    worker.store_upload(experiment, form.files_by_name())
    tasks.read_upload.delay(experiment.pk)
    return redirect("experiment", experiment.pk)


def _create(request: HttpRequest, title: str, origin: str, scenario: Scenario, days: float) -> HttpResponse:
    try:
        experiment = experiments.create(signed_in(request), title, origin, scenario, days)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("emulator")
    return redirect("experiment", experiment.pk)


# --- an experiment -------------------------------------------------------------------------------------------


def _own(request: HttpRequest, pk: int) -> Experiment:
    return get_object_or_404(Experiment, pk=pk, owner=signed_in(request))


def _readable(request: HttpRequest, key: str) -> Experiment:
    """By number for its owner, by its share token for anybody; Http404 for all others."""
    if key.isascii() and key.isdigit() and len(key) < 19:
        if not request.user.is_authenticated:
            raise Http404("no such experiment")
        return get_object_or_404(Experiment, pk=int(key), owner=request.user)
    return get_object_or_404(Experiment, share_token=key, started_at__isnull=False)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def experiment(request: HttpRequest, pk: int) -> HttpResponse:
    """Before it is started: what shall be tried? Afterwards: what came of it?"""
    found = _own(request, pk)
    if found.started_at is not None:
        return _results(request, found, str(pk))
    if found.scenario is None:
        return render(request, "emulator/reading.html", {"experiment": found})
    scenario = pages_reads.scenario_of(found)
    initial = {"title": found.title, "days": found.days}
    if request.method != "POST":
        return _set_up(request, found, scenario, TrialForm(scenario, initial=initial))
    form = TrialForm(scenario, request.POST)
    if not form.is_valid():
        return _set_up(request, found, scenario, form)
    return _start(request, found, scenario, form)


def _set_up(request: HttpRequest, found: Experiment, scenario: Scenario, form: TrialForm) -> HttpResponse:
    context = {
        "experiment": found,
        "scenario": scenario,
        "form": form,
        "processors": pages_reads.processors_text(scenario),
    }
    return render(request, "emulator/set_up.html", context, status=400 if form.errors else 200)


def _start(request: HttpRequest, found: Experiment, scenario: Scenario, form: TrialForm) -> HttpResponse:
    data = form.cleaned_data
    try:
        runs = experiments.start(
            found,
            changed(scenario, form.change()),
            title=data["title"],
            days=data["days"],
            variants=form.variants(),
            seeds=form.seeds(),
            parameter=data["parameter"],
            now=timezone.now(),
        )
    except (Refused, ScenarioError) as refusal:
        form.add_error(None, str(refusal))
        return _set_up(request, found, scenario, form)
    for run in runs:
        tasks.carry_out.delay(run.pk)
    return redirect("experiment", found.pk)


@require_safe
def shared(request: HttpRequest, key: str) -> HttpResponse:
    """What came of an experiment that somebody shared."""
    found = _readable(request, key)
    return _results(request, found, key)


def _results(request: HttpRequest, found: Experiment, key: str) -> HttpResponse:
    runs = pages_reads.read_runs(found)
    unfinished = pages_reads.is_unfinished(runs)
    asks_progress = request.headers.get("HX-Target") == "progress"
    if asks_progress and not unfinished:
        # The page has more to show than the progress now.
        return HttpResponse(headers={"HX-Refresh": "true", "Vary": _VARY})
    rows = pages_reads.variants(runs)
    is_owner = request.user.is_authenticated and found.owner_id == request.user.pk
    if not unfinished and len(runs) == 1 and runs[0].state == RunState.DONE:
        response = _run_page(request, found, runs[0], key)
        response.headers["Vary"] = _VARY
        return response
    context = {
        "experiment": found,
        "key": key,
        "is_owner": is_owner,
        "runs": runs,
        "is_unfinished": unfinished,
        "progress": pages_reads.progress(runs),
        "rows": rows,
        "names": runs[0].projects and [row["name"] for row in runs[0].projects],
        "figures": pages_reads.FIGURES,
        "troubles": pages_reads.troubles(runs),
        "has_figures": any(row.figures for row in rows),
        "chart": pages_reads.chart(found, rows),
        "processors": pages_reads.processors_text(pages_reads.scenario_of(found)),
        "share_url": _share_url(request, found),
    }
    response = render(request, "emulator/_progress.html" if asks_progress else "emulator/results.html", context)
    response.headers["Vary"] = _VARY
    return response


def _share_url(request: HttpRequest, found: Experiment) -> str:
    if found.share_token is None:
        return ""
    return f"{settings.SITE_URL.rstrip('/')}/emulator/shared/{found.share_token}/"


@require_POST
@login_required
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Try something else with the same scenario."""
    found = _own(request, pk)
    if found.scenario is None:
        raise Http404("no scenario to copy")
    try:
        return redirect("experiment", experiments.copy(found).pk)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("experiment", pk)


@require_POST
@login_required
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    experiments.cancel(_own(request, pk), timezone.now())
    return redirect("experiment", pk)


@require_POST
@login_required
def share(request: HttpRequest, pk: int) -> HttpResponse:
    found = _own(request, pk)
    if "end" in request.POST:
        experiments.unshare(found)
        messages.success(request, "The link leads nowhere any more.")
    else:
        experiments.share(found)
        messages.success(
            request,
            "Whoever has the link below can look at this experiment and its computer’s name, at nothing else of yours.",
        )
    return redirect("experiment", pk)


@require_POST
@login_required
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    found = _own(request, pk)
    experiments.delete(found)
    messages.success(request, f"“{found.title}” is deleted.")
    return redirect("emulator")


# --- a run ---------------------------------------------------------------------------------------------------


def _run(request: HttpRequest, key: str, number: int) -> tuple[Experiment, Run]:
    found = _readable(request, key)
    return found, get_object_or_404(Run.objects.select_related("experiment"), experiment=found, number=number)


def _timeline(request: HttpRequest, key: str, number: int) -> tuple[Run, Packed]:
    _, run = _run(request, key, number)
    packed = pages_reads.read_timeline(run.pk) if run.state == RunState.DONE else None
    if packed is None:
        raise Http404("this run keeps no timeline")
    return run, packed


@require_safe
def run(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """What did the client do, and who got how much?"""
    found, row = _run(request, key, number)
    return _run_page(request, found, row, key)


def _run_page(request: HttpRequest, found: Experiment, row: Run, key: str) -> HttpResponse:
    packed = pages_reads.read_timeline(row.pk) if row.state == RunState.DONE and row.keeps_timeline else None
    palette = pages_reads.colours([project["name"] for project in row.projects])
    context = {
        "experiment": found,
        "run": row,
        "key": key,
        "is_owner": request.user.is_authenticated and found.owner_id == request.user.pk,
        "is_alone": not found.runs.exclude(pk=row.pk).exists(),
        "parts": pages_reads.parts(row, palette),
        "palette": palette,
        "figures": [
            (title, why, row.figures[name]) for name, (title, why) in pages_reads.FIGURES.items() if row.figures
        ],
        "texts": packed.texts if packed else None,
        "processors": pages_reads.processors_text(pages_reads.scenario_of(found)),
        "share_url": _share_url(request, found),
        "tables": [(what, title, _table(packed, what, 0.0, "", palette)) for what, (title, *_) in _TABLES.items()]
        if packed
        else [],
    }
    return render(request, "emulator/run.html", context)


def _seconds(request: HttpRequest, name: str, default: float) -> float:
    try:
        value = float(request.GET.get(name, default))
    except ValueError:
        raise Http404(f"{name} is no time") from None
    if not math.isfinite(value):
        raise Http404(f"{name} is no time")
    return value


@require_safe
def run_window(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """The timeline between two times, as it is to be drawn."""
    _, packed = _timeline(request, key, number)
    duration = float(packed.texts["duration_secs"])
    start = min(max(_seconds(request, "from", 0.0), 0.0), duration)
    end = min(max(_seconds(request, "to", duration), 0.0), duration)
    if end - start < 1e-3:
        raise Http404("an empty window")
    width = int(min(max(_seconds(request, "width", 1000), 1), WIDTH_MAX))
    response = JsonResponse(window(packed, start, end, width))
    response["Cache-Control"] = "private, max-age=3600"
    return response


# What the page has as tables: title, times of the rows, and how a row is told.
_TABLES: Final[dict[str, tuple[str, str, Callable[[Packed, int], dict[str, Any]]]]] = {
    "decisions": ("Why each thing was done", "decisions.at_secs", downloads.decision),
    "blocks": ("What ran", "blocks.start_secs", downloads.block),
    "rpcs": ("Contacts with projects", "rpcs.at_secs", downloads.rpc),
    "misses": ("Late jobs", "misses.at_secs", downloads.miss),
    "levels": ("Work in the buffer, and each project’s standing", "levels.at_secs", downloads.level),
    "states": ("When it could compute", "states.from_secs", downloads.state),
}

_OF_THE_COMPUTER: Final = ("levels", "states")


@require_safe
def run_table(request: HttpRequest, key: str, number: int, what: str) -> HttpResponse:
    """Rows of a table from a time on; the next page by the number of the row that it begins with."""
    if what not in _TABLES:
        raise Http404("no such table")
    run, packed = _timeline(request, key, number)
    palette = pages_reads.colours(packed.texts["projects"])
    table = _table(packed, what, _seconds(request, "from", 0.0), request.GET.get("row", ""), palette)
    is_more = request.headers.get("HX-Target") == f"more-{what}"
    context = {"table": table, "what": what, "key": key, "run": run, "is_more": is_more, "title": _TABLES[what][0]}
    template = "emulator/_table_rows.html" if is_more else "emulator/table.html"
    response = render(request, template, context)
    response.headers["Vary"] = _VARY
    return response


def _table(packed: Packed, what: str, from_secs: float, row: str, palette: list[int]) -> dict[str, Any]:
    _, times, tell = _TABLES[what]
    at = packed[times]
    # Blocks are in the order in which they ended: only the other tables can be looked up by time.
    found = 0 if what == "blocks" else int(at.searchsorted(from_secs))
    first = int(row) if row.isascii() and row.isdigit() and len(row) < 10 else found
    last = min(first + ROWS_A_PAGE, len(at))
    return {
        "rows": [
            told | {"colour": palette[told["project_number"]]}
            for told in (tell(packed, number) for number in range(first, last))
        ],
        "next": last if last < len(at) else None,
        "total": len(at),
        "has_projects": what not in _OF_THE_COMPUTER,
        "dropped": packed.texts["decisions_dropped"] if what == "decisions" else 0,
    }


_CSV: Final = {
    "blocks": downloads.blocks_csv,
    "rpcs": downloads.rpcs_csv,
    "decisions": downloads.decisions_csv,
    "misses": downloads.misses_csv,
    "levels": downloads.levels_csv,
    "states": downloads.states_csv,
}


@require_safe
def run_csv(request: HttpRequest, key: str, number: int, what: str) -> HttpResponseBase:
    """Blocks, RPCs or decisions as CSV."""
    if what not in _CSV:
        raise Http404("no such table")
    row, packed = _timeline(request, key, number)
    name = f"{slugify(row.experiment.title) or 'experiment'}-{number}-{what}.csv"
    return StreamingHttpResponse(
        _joined(_CSV[what](packed)), content_type="text/csv; charset=utf-8", headers=_attachment(name)
    )


def _joined(lines: Iterator[str]) -> Iterator[str]:
    """A few thousand lines at a time."""
    piece: list[str] = []
    for line in lines:
        piece.append(line)
        if len(piece) >= downloads.CHUNK_ROWS:
            yield "".join(piece)
            piece.clear()
    yield "".join(piece)


@require_safe
def run_json(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """Figures, projects and the scenario as JSON."""
    _, row = _run(request, key, number)
    if row.state != RunState.DONE:
        raise Http404("this run is not done")
    name = f"{slugify(row.experiment.title) or 'experiment'}-{number}.json"
    return JsonResponse(downloads.as_json(row), headers=_attachment(name), json_dumps_params={"indent": 1})


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
