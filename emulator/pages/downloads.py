"""A run as JSON and CSV for other programs: in English, whatever language the visitor reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings
from django.urls import reverse

from emulator.engine.policies.registry import POLICY_PARAMETERS, policy_notes
from emulator.engine.timeline.results import HostState
from emulator.files.scenario_json import VERSION, from_json, to_json
from emulator.models import Run
from emulator.pages.texts import decision_texts, row_texts
from emulator.runs.packed_timeline import BLOCK_COLUMNS, MISS_COLUMNS, RPC_COLUMNS, Packed
from emulator.runs.sweeps import with_parameters

CHUNK_ROWS: Final = 5000
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
_STATES: Final = {
    HostState.COMPUTING: "may compute",
    HostState.NO_GPU: "may compute, but not on GPUs",
    HostState.INACTIVE: "is on, but may not compute",
    HostState.OFF: "is off",
    HostState.OUTSIDE_HOURS: "is on, but may not compute at this hour",
    HostState.IN_USE: "is on, but may not compute while it is in use",
    HostState.ON_BATTERIES: "is on, but may not compute on its battery",
    HostState.EXCLUSIVE_APP: "is on, but may not compute beside an exclusive application",
}


def as_json(run: Run) -> dict[str, Any]:
    """Return the run and its figures: those of ``manage.py emulate --json``, with all data of each project.

    It is a document (emulator.files.scenario_json) that gives the same result: it includes the parameters' changes of
    the scenario.
    """
    scenario = with_parameters(from_json(run.experiment.scenario), run.parameters)
    return {
        "$schema": f"{settings.SITE_URL.rstrip('/')}{reverse('scenario_schema')}",
        "version": VERSION,
        "experiment": run.experiment.title,
        "variant": run.variant,
        "policy": run.policy,
        "quirks": run.has_quirks,
        "parameters": {name: value for name, value in run.parameters.items() if name in POLICY_PARAMETERS},
        "seed": run.seed,
        "days": run.experiment.days,
        "figures_of_merit": run.figures,
        "projects": run.projects,
        "notes": [*map(str, policy_notes(run.policy, scenario))],
        "cpu_secs": run.cpu_secs,
        "scenario": to_json(scenario),
    }


def blocks_csv(packed: Packed) -> Iterator[str]:
    """Write what ran when on which processor: one line per stretch."""
    lanes = [f"{kind} {number}" for kind, number in packed.texts["lanes"]]
    yield "start_secs,end_secs,processor,project,job,usage,by_deadline\r\n"
    for row in _rows(packed, "blocks", BLOCK_COLUMNS):
        start, end, lane, project, job, usage, by_deadline = row
        where = lanes[lane] if lane >= 0 else "beside a GPU job"
        yield _line([start, end, where, packed.texts["projects"][project], job, usage, by_deadline])


def rpcs_csv(packed: Packed) -> Iterator[str]:
    """Write contacts with projects."""
    yield "at_secs,project,asked_secs,jobs_got,jobs_reported,answered\r\n"
    for at, project, asked, got, reported, answered in _rows(packed, "rpcs", RPC_COLUMNS):
        yield _line([at, packed.texts["projects"][project], asked, got, reported, answered])


def misses_csv(packed: Packed) -> Iterator[str]:
    """Write jobs that were finished after their deadline."""
    yield "at_secs,project,job,late_secs\r\n"
    for at, project, job, late in _rows(packed, "misses", MISS_COLUMNS):
        yield _line([at, packed.texts["projects"][project], job, late])


def levels_csv(packed: Packed) -> Iterator[str]:
    """Write work in the buffer by kind of processor, in seconds, and each project's standing (recent credit or
    debt).
    """
    kinds, projects = packed.texts["kinds"], packed.texts["projects"]
    names = [f"buffer_secs {kind}" for kind in kinds] + [f"standing {project}" for project in projects]
    yield _line(["at_secs", *names])
    columns = [packed["levels.at_secs"], *packed["levels.buffer_secs"], *packed["levels.standing"]]
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield _line(list(row))


def states_csv(packed: Packed) -> Iterator[str]:
    """Write when the computer could compute."""
    yield "from_secs,state\r\n"
    for since, state in _rows(packed, "states", ("from_secs", "state")):
        yield _line([since, _STATES[HostState(state)]])


def decisions_csv(packed: Packed) -> Iterator[str]:
    """Write the reason for each action."""
    yield "at_secs,project,job,processor,why\r\n"
    sentences = decision_texts.english()
    for number in range(len(packed["decisions.at_secs"])):
        row = row_texts.decision(packed, number, sentences)
        yield _line([row["at_secs"], row["project"], row["job"], row["processor"], row["why"]])


def _rows(packed: Packed, group: str, names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    columns = [packed[f"{group}.{name}"] for name in names]
    for first in range(0, len(columns[0]), CHUNK_ROWS):
        yield from zip(*(column[first : first + CHUNK_ROWS].tolist() for column in columns), strict=True)


def _line(values: list[Any]) -> str:
    """Make a CSV line. Names come from uploaded files: a spreadsheet must not take one for a formula."""
    safe = [f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value for value in values]
    out = io.StringIO()
    csv.writer(out).writerow(safe)
    return out.getvalue()
