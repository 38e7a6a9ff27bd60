"""A run as JSON and CSV for other programs, and its rows in words for the pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from emulator.engine.timeline.reasons import SENTENCES, Reason
from emulator.engine.timeline.results import HostState
from emulator.models import Run
from emulator.runs.packed_timeline import BLOCK_COLUMNS, MISS_COLUMNS, RPC_COLUMNS, Packed

CHUNK_ROWS: Final = 5000
NAMED_MAX: Final = 12
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
_STATES: Final = {
    HostState.COMPUTING: "may compute",
    HostState.NO_GPU: "may compute, but not on GPUs",
    HostState.INACTIVE: "is on, but may not compute",
    HostState.OFF: "is off",
}


def as_json(run: Run) -> dict[str, Any]:
    """The run and its figures: those of ``manage.py emulate --json``, with all data of each project."""
    return {
        "experiment": run.experiment.title,
        "variant": run.variant,
        "policy": run.policy,
        "quirks": run.has_quirks,
        "parameters": run.parameters,
        "seed": run.seed,
        "days": run.experiment.days,
        "figures_of_merit": run.figures,
        "projects": run.projects,
        "cpu_secs": run.cpu_secs,
        "scenario": run.experiment.scenario,
    }


def blocks_csv(packed: Packed) -> Iterator[str]:
    """What ran when on which processor: one line per stretch."""
    lanes = [f"{kind} {number}" for kind, number in packed.texts["lanes"]]
    yield "start_secs,end_secs,processor,project,job,usage,by_deadline\r\n"
    for row in _rows(packed, "blocks", BLOCK_COLUMNS):
        start, end, lane, project, job, usage, by_deadline = row
        where = lanes[lane] if lane >= 0 else "beside a GPU job"
        yield _line([start, end, where, packed.texts["projects"][project], job, usage, by_deadline])


def rpcs_csv(packed: Packed) -> Iterator[str]:
    """Contacts with projects."""
    yield "at_secs,project,asked_secs,jobs_got,jobs_reported,answered\r\n"
    for at, project, asked, got, reported, answered in _rows(packed, "rpcs", RPC_COLUMNS):
        yield _line([at, packed.texts["projects"][project], asked, got, reported, answered])


def misses_csv(packed: Packed) -> Iterator[str]:
    """Jobs that were finished after their deadline."""
    yield "at_secs,project,job,late_secs\r\n"
    for at, project, job, late in _rows(packed, "misses", MISS_COLUMNS):
        yield _line([at, packed.texts["projects"][project], job, late])


def levels_csv(packed: Packed) -> Iterator[str]:
    """Work in the buffer by kind of processor, in seconds, and each project's standing (recent credit or debt)."""
    kinds, projects = packed.texts["kinds"], packed.texts["projects"]
    names = [f"buffer_secs {kind}" for kind in kinds] + [f"standing {project}" for project in projects]
    yield _line(["at_secs", *names])
    columns = [packed["levels.at_secs"], *packed["levels.buffer_secs"], *packed["levels.standing"]]
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield _line(list(row))


def states_csv(packed: Packed) -> Iterator[str]:
    """When the computer could compute."""
    yield "from_secs,state\r\n"
    for number in range(len(packed["states.from_secs"])):
        row = state(packed, number)
        yield _line([row["at_secs"], row["why"]])


def decisions_csv(packed: Packed) -> Iterator[str]:
    """Why each thing was done."""
    yield "at_secs,project,job,processor,why\r\n"
    for number in range(len(packed["decisions.at_secs"])):
        row = decision(packed, number)
        yield _line([row["at_secs"], row["project"], row["job"], row["processor"], row["why"]])


def decision(packed: Packed, number: int) -> dict[str, Any]:
    """A decision in words."""
    kind = packed.texts["kinds"][int(packed["decisions.processor"][number])]
    project = packed.texts["projects"][int(packed["decisions.project"][number])]
    job, amount = int(packed["decisions.job"][number]), float(packed["decisions.amount"][number])
    sentence = SENTENCES[Reason(int(packed["decisions.reason"][number]))]
    return {
        "at_secs": float(packed["decisions.at_secs"][number]),
        "project": project,
        "project_number": int(packed["decisions.project"][number]),
        "job": job if job >= 0 else "",
        "processor": kind,
        "why": sentence.format(
            job=f"Job {job}", project=project, kind=kind, amount=f"{amount:.0f}", time=f"{amount:.0f} s"
        ),
    }


def block(packed: Packed, number: int) -> dict[str, Any]:
    """A stretch of running in words."""
    lane, project = int(packed["blocks.lane"][number]), int(packed["blocks.project"][number])
    kind, place = packed.texts["lanes"][lane] if lane >= 0 else ("beside a GPU job", "")
    what = f"job {int(packed['blocks.job'][number])} until {run_time(float(packed['blocks.end_secs'][number]))}"
    deadline = ", for its deadline" if packed["blocks.by_deadline"][number] else ""
    return _row(packed, "blocks.start_secs", number, project, f"{kind} {place}: {what}{deadline}".replace(" :", ":"))


def rpc(packed: Packed, number: int) -> dict[str, Any]:
    """A contact with a project in words."""
    got, reported = int(packed["rpcs.got"][number]), int(packed["rpcs.reported"][number])
    asked = float(packed["rpcs.asked_secs"][number])
    parts = [f"asked for {asked:.0f} s of work and got {got} jobs"] if asked else []
    parts += [f"reported {reported} jobs"] if reported else []
    what = "; ".join(parts) or "contacted"
    return _row(
        packed,
        "rpcs.at_secs",
        number,
        int(packed["rpcs.project"][number]),
        what if packed["rpcs.answered"][number] else f"{what}: no answer",
    )


def miss(packed: Packed, number: int) -> dict[str, Any]:
    """A late job in words."""
    late = _hours(float(packed["misses.late_secs"][number]))
    why = f"job {int(packed['misses.job'][number])} is finished {late} after its deadline"
    return _row(packed, "misses.at_secs", number, int(packed["misses.project"][number]), why)


def level(packed: Packed, number: int) -> dict[str, Any]:
    """Work in the buffer and the projects' standing at a moment, in words."""
    kinds, projects = packed.texts["kinds"], packed.texts["projects"]
    stored = [
        f"{kind} {_hours(float(line[number]))}" for kind, line in zip(kinds, packed["levels.buffer_secs"], strict=True)
    ]
    standing = [
        f"{name} {line[number]:.4g}"
        for name, line in zip(projects[:NAMED_MAX], packed["levels.standing"], strict=False)
    ]
    more = len(projects) - len(standing)
    why = f"in the buffer: {', '.join(stored)}; standing: {', '.join(standing)}" + (f", {more} more" if more else "")
    return {"at_secs": float(packed["levels.at_secs"][number]), "project": "", "project_number": 0, "why": why}


def state(packed: Packed, number: int) -> dict[str, Any]:
    """The computer's availability from a moment on, in words."""
    why = _STATES[HostState(int(packed["states.state"][number]))]
    return {"at_secs": float(packed["states.from_secs"][number]), "project": "", "project_number": 0, "why": why}


def _hours(secs: float) -> str:
    return f"{secs / 3600:.2f} h"


def _row(packed: Packed, times: str, number: int, project: int, why: str) -> dict[str, Any]:
    return {
        "at_secs": float(packed[times][number]),
        "project": packed.texts["projects"][project],
        "project_number": project,
        "why": why,
    }


def run_time(secs: float) -> str:
    """Seconds from the start of a run as "day 3, 04:05:06"."""
    whole = int(secs)
    return f"day {whole // 86400}, {whole // 3600 % 24:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _rows(packed: Packed, group: str, names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    columns = [packed[f"{group}.{name}"] for name in names]
    for first in range(0, len(columns[0]), CHUNK_ROWS):
        yield from zip(*(column[first : first + CHUNK_ROWS].tolist() for column in columns), strict=True)


def _line(values: list[Any]) -> str:
    """Names come from uploaded files: a spreadsheet must not take one for a formula."""
    safe = [f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value for value in values]
    out = io.StringIO()
    csv.writer(out).writerow(safe)
    return out.getvalue()
