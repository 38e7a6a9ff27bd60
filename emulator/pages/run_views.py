"""Pages of one run: its figures, the timeline's windows and tables, downloads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.text import slugify
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from emulator.engine.policies.registry import policy_notes
from emulator.models import Experiment, Run, RunState
from emulator.pages import downloads, reads
from emulator.pages.access import readable_experiment, readable_run
from emulator.pages.texts import row_texts, variant_texts
from emulator.pages.texts.answer import answer_of
from emulator.pages.texts.verdicts import verdict_of
from emulator.pages.visitor import is_owner, of_the_visitor
from emulator.pages.window import WIDTH_MAX, window
from emulator.runs.packed_timeline import Packed
from portal.languages.sentences import sentence

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

ROWS_A_PAGE: Final = 100
SIDE_BY_SIDE_MAX: Final = 8
# The same address serves a page or a fragment: a cache must keep the two apart.
VARY: Final = "Cookie, HX-Target"


def _timeline(request: HttpRequest, key: str, number: int) -> tuple[Run, Packed]:
    _found, run = readable_run(request, key, number)
    packed = reads.timeline_of(run)
    if packed is None:
        raise Http404("this run keeps no timeline")
    return run, packed


@require_safe
def run(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """A run: what the client did, and how much each project got."""
    experiment, row = readable_run(request, key, number)
    return run_page(request, experiment, row, key)


def run_page(request: HttpRequest, experiment: Experiment, row: Run, key: str) -> HttpResponse:
    """Render the page of a run; also of an experiment that has only this one."""
    packed = reads.timeline_of(row)
    palette = reads.colours([project["name"] for project in row.projects])
    figures = {name: reads.FIGURES[name] for name in reads.figures_of([row])} if row.figures else {}
    scenario = reads.scenario_of(experiment)
    context = {
        "experiment": experiment,
        "run": row,
        "fault": sentence(row.fault),
        "parameters": variant_texts.parameters(row.parameters),
        "key": key,
        "is_alone": len(reads.read_runs(experiment)) == 1,
        "project_fractions": reads.project_fractions(row, palette),
        "palette": palette,
        "figures": [
            (title, why, row.figures[name], verdict_of(name, row.figures[name], len(row.projects)))
            for name, (title, why) in figures.items()
        ],
        "answer": answer_of(row.answer, has_names=is_owner(request, experiment)),
        "texts": packed.texts if packed else None,
        "timeline": timeline_facts(row, packed, palette) if packed else None,
        "processors": reads.processors_text(scenario),
        "notes": [sentence(note) for note in policy_notes(row.policy, scenario)],
        **of_the_visitor(request, experiment),
        "tables": [(what, title, _table(packed, what, 0.0, "", palette)) for what, (title, *_rest) in _TABLES.items()]
        if packed
        else [],
    }
    return render(request, "emulator/run.html", context)


def timeline_facts(row: Run, packed: Packed, palette: list[int]) -> dict[str, Any]:
    """Return the data of a timeline's drawing besides its windows: the run, and facts as JSON."""
    facts = {name: packed.texts[name] for name in ("lanes", "projects", "kinds")}
    return {"run": row, "duration_secs": packed.texts["duration_secs"], "facts": {**facts, "palette": palette}}


@require_safe
def side_by_side(request: HttpRequest, key: str) -> HttpResponse:
    """Return the timelines of an experiment's variants, which all show the same times."""
    experiment = readable_experiment(request, key)
    runs = [run for run in reads.read_runs(experiment) if run.state == RunState.DONE and run.keeps_timeline]
    palette = reads.colours([project["name"] for project in runs[0].projects]) if runs else []
    read = [(run, reads.timeline_of(run)) for run in runs[:SIDE_BY_SIDE_MAX]]
    context = {
        "experiment": experiment,
        "key": key,
        "timelines": [timeline_facts(run, packed, palette) for run, packed in read if packed is not None],
        "nleft_out": max(0, len(runs) - SIDE_BY_SIDE_MAX),
        "page_url": of_the_visitor(request, experiment)["page_url"],
        "project_fractions": reads.project_fractions(runs[0], palette) if runs else [],
    }
    return render(request, "emulator/side_by_side.html", context)


@require_safe
def run_job(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """One job of a run: when and where it ran, and the decisions about it. For htmx only the fragment."""
    run, packed = _timeline(request, key, number)
    asked = request.GET.get("job", "")
    job = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 16 else None
    rows = [] if job is None else row_texts.of_job(packed, job)
    context = {"run": run, "key": key, "job": job, "asked": asked, "rows": rows}
    template = "emulator/_job.html" if request.headers.get("HX-Request") else "emulator/job.html"
    response = render(request, template, context)
    response.headers["Vary"] = "Cookie, HX-Request"
    return response


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _seconds(request: HttpRequest, name: str, default: float) -> float:
    value = _number(request.GET.get(name, str(default)))
    if value is None:
        raise Http404(f"{name} is no time")
    return value


@require_safe
def run_window(request: HttpRequest, key: str, number: int) -> HttpResponse:
    """The timeline between two times, in the form for drawing."""
    _run, packed = _timeline(request, key, number)
    duration = float(packed.texts["duration_secs"])
    start = min(max(_seconds(request, "from", 0.0), 0.0), duration)
    end = min(max(_seconds(request, "to", duration), 0.0), duration)
    if end - start < 1e-3:
        raise Http404("an empty window")
    width = int(min(max(_seconds(request, "width", 1000), 1), WIDTH_MAX))
    response = JsonResponse(window(packed, start, end, width))
    response["Cache-Control"] = "private, max-age=3600"
    return response


# The page's tables: title, column of the rows' times, and the function that puts a row into words.
_TABLES: Final[dict[str, tuple[_StrPromise, str, Callable[[Packed, int], dict[str, Any]]]]] = {
    "decisions": (_("Scheduling decisions"), "decisions.at_secs", row_texts.decision),
    "blocks": (_("What ran"), "blocks.start_secs", row_texts.block),
    "rpcs": (_("Contacts with projects"), "rpcs.at_secs", row_texts.rpc),
    "misses": (_("Late tasks"), "misses.at_secs", row_texts.miss),
    "levels": (_("Work buffer and project standing"), "levels.at_secs", row_texts.level),
    "states": (_("Availability"), "states.from_secs", row_texts.state),
}

_OF_THE_COMPUTER: Final = ("levels", "states")


@require_safe
def run_table(request: HttpRequest, key: str, number: int, what: str) -> HttpResponse:
    """Rows of a table from a time on; the next page by the number of its first row."""
    if what not in _TABLES:
        raise Http404("no such table")
    run, packed = _timeline(request, key, number)
    palette = reads.colours(packed.texts["projects"])
    asked = request.GET.get("from", "0")
    from_secs = _number(asked)
    problem = ""
    if from_secs is None:
        problem = gettext("“%(text)s” is not a time in seconds. The table begins at the start.") % {"text": asked[:20]}
    table = _table(packed, what, from_secs or 0.0, request.GET.get("row", ""), palette)
    is_more = request.headers.get("HX-Target") == f"more-{what}"
    context = {
        "table": table, "what": what, "key": key, "run": run, "is_more": is_more, "title": _TABLES[what][0],
        "problem": problem,
    }  # fmt: skip
    template = "emulator/_table_rows.html" if is_more else "emulator/table.html"
    response = render(request, template, context)
    response.headers["Vary"] = VARY
    return response


def _table(packed: Packed, what: str, from_secs: float, row: str, palette: list[int]) -> dict[str, Any]:
    _title, times, describe = _TABLES[what]
    at = packed[times]
    # Blocks are in the order in which they ended: only the other tables can be looked up by time.
    first_row = 0 if what == "blocks" else int(at.searchsorted(from_secs))
    first = int(row) if row.isascii() and row.isdigit() and len(row) < 10 else first_row
    last = min(first + ROWS_A_PAGE, len(at))
    return {
        "rows": [
            row_words | {"colour": palette[row_words["project_number"]]}
            for row_words in (describe(packed, number) for number in range(first, last))
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
    """Join a few thousand lines at a time."""
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
    _found, row = readable_run(request, key, number)
    if row.state != RunState.DONE:
        raise Http404("this run is not done")
    name = f"{slugify(row.experiment.title) or 'experiment'}-{number}.json"
    return JsonResponse(downloads.as_json(row), headers=_attachment(name), json_dumps_params={"indent": 1})


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
