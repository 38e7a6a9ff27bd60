"""The part of a timeline between two times, at a given width: exact blocks if they are few, else per column. Pure.

The browser draws only these, so its work depends on the width of the screen, not on the length of the run.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from emulator.engine.timeline.results import HostState
from emulator.runs.packed_timeline import Floats, Ints, Packed

BLOCKS_MAX: Final = 4000
MARKS_MAX: Final = 1500
WIDTH_MAX: Final = 4096
CELL_PIXELS: Final = 3
"""The width of a stack of colours: a narrower one could not be told from its neighbours."""
POINTS_MAX: Final = 800

Cell = tuple[int, int, int, list[list[float]]]
"""A lane, its first column, the column after the last, and the busy part of each project in these."""


def window(packed: Packed, from_secs: float, to_secs: float, width: int) -> dict[str, Any]:
    """Return lanes, marks and lines between two times (s), for a drawing this many pixels wide.

    ``blocks``: rows [lane, start, end, project, usage, by_deadline, job]; or ``cells``: rows [lane, first column,
    column after the last, [[project, busy part], …]], of ``width`` columns.
    ``rpcs``: [at, project, asked, got, answered];
    ``misses``: [at, project, job, late]; ``states``: [from, to, state] where the computer could not compute fully;
    ``levels``: times, work in the buffer per kind (instance-seconds), each project's standing.
    """
    width = max(1, min(width, WIDTH_MAX))
    start, end = packed["blocks.start_secs"], packed["blocks.end_secs"]
    inside = np.flatnonzero((end > from_secs) & (start < to_secs) & (packed["blocks.lane"] >= 0))
    columns = math.ceil(width / CELL_PIXELS)
    out: dict[str, Any] = {"from": from_secs, "to": to_secs, "width": columns}
    covered = packed.texts["blocks_complete"] or (len(end) > 0 and to_secs <= float(start[-1]))
    if not covered:
        out["cells"] = _cells_of_bins(packed, from_secs, to_secs, columns)
    elif len(inside) <= BLOCKS_MAX:
        out["blocks"] = _blocks(packed, inside)
    else:
        out["cells"] = _cells_of_blocks(packed, inside, from_secs, to_secs, columns)
    out["rpcs"] = _marks(packed, "rpcs", ("at_secs", "project", "asked_secs", "got", "answered"), from_secs, to_secs)
    out["misses"] = _marks(packed, "misses", ("at_secs", "project", "job", "late_secs"), from_secs, to_secs)
    out["states"] = _states(packed, from_secs, to_secs)
    out["levels"] = _levels(packed, from_secs, to_secs)
    return out


def _blocks(packed: Packed, rows: Ints) -> list[list[float]]:
    names = ("lane", "start_secs", "end_secs", "project", "usage", "by_deadline", "job")
    columns = [packed[f"blocks.{name}"][rows].tolist() for name in names]
    return [list(row) for row in zip(*columns, strict=True)]


def _cells_of_blocks(packed: Packed, rows: Ints, from_secs: float, to_secs: float, width: int) -> list[Cell]:
    """Return per lane and column how much of it was busy with which project."""
    lanes, projects = len(packed.texts["lanes"]), len(packed.texts["projects"])
    column_secs = (to_secs - from_secs) / width
    first = np.clip((packed["blocks.start_secs"][rows] - from_secs) / column_secs, 0, width)
    last = np.clip((packed["blocks.end_secs"][rows] - from_secs) / column_secs, 0, width)
    lane, project = packed["blocks.lane"][rows], packed["blocks.project"][rows]
    usage = packed["blocks.usage"][rows]
    cells: list[Cell] = []
    for row in range(lanes):
        of_lane = lane == row
        busy = np.zeros((projects, width))
        for number in np.unique(project[of_lane]):
            mine = of_lane & (project == number)
            busy[number] = cover(first[mine], last[mine], usage[mine], width)
        cells += _runs(row, busy)
    return cells


def cover(first: Floats, last: Floats, usage: Floats, width: int) -> Floats:
    """Return how much of each column the intervals cover, weighted; exact, in one pass over the intervals."""
    # The integral of the coverage up to each column's edge is piecewise linear: add slopes where intervals begin and
    # end, weighted by the fraction of that column.
    edge = np.zeros(width + 2)
    part = np.zeros(width + 2)
    for at, sign in ((first, 1.0), (last, -1.0)):
        column = np.minimum(at.astype(np.int64), width)
        np.add.at(edge, column + 1, sign * usage)
        np.add.at(part, column, sign * usage * (column + 1 - at))
    return (np.cumsum(edge) + part)[:width]


def _runs(lane: int, busy: Floats) -> list[Cell]:
    """Return a lane's columns, equal neighbours joined: which part of each was busy with which project."""
    part = np.round(busy, 2)
    change = np.flatnonzero(np.diff(part, axis=1).any(axis=0)) + 1
    starts = np.concatenate(([0], change))
    ends = np.concatenate((change, [part.shape[1]]))
    cells: list[Cell] = []
    for a, b in zip(starts, ends, strict=True):
        stack = [[int(project), float(part[project, a])] for project in np.flatnonzero(part[:, a])]
        if stack:
            cells.append((lane, int(a), int(b), stack))
    return cells


def _cells_of_bins(packed: Packed, from_secs: float, to_secs: float, width: int) -> list[Cell]:
    """Build cells from the account of the whole run in equal parts: a kind's lanes are filled one after another."""
    busy, bin_secs = packed["bins.busy"], packed.texts["bin_secs"]
    centres = from_secs + (np.arange(width) + 0.5) * (to_secs - from_secs) / width
    bins = np.clip((centres / bin_secs).astype(np.int64), 0, busy.shape[2] - 1)
    cells: list[Cell] = []
    for lane, (kind, number) in enumerate(packed.texts["lanes"]):
        index = packed.texts["kinds"].index(kind)
        part = busy[index][:, bins] / bin_secs  # instances per project and column
        above = np.cumsum(part, axis=0)
        below = above - part
        within = np.clip(np.minimum(above, number + 1) - np.maximum(below, number), 0, 1)
        cells += _runs(lane, within)
    return cells


def _marks(packed: Packed, group: str, names: tuple[str, ...], from_secs: float, to_secs: float) -> dict[str, Any]:
    """Return rows in the window; if there are too many, evenly spaced ones, and their total number."""
    at = packed[f"{group}.at_secs"]
    low, high = np.searchsorted(at, [from_secs, to_secs])
    rows = np.arange(low, high)
    if len(rows) > MARKS_MAX:
        rows = rows[np.linspace(0, len(rows) - 1, MARKS_MAX).astype(np.int64)]
    columns = [packed[f"{group}.{name}"][rows].tolist() for name in names]
    return {"count": int(high - low), "rows": [list(row) for row in zip(*columns, strict=True)]}


def _states(packed: Packed, from_secs: float, to_secs: float) -> list[list[float]]:
    begins, states = packed["states.from_secs"], packed["states.state"]
    ends = np.append(begins[1:], packed.texts["duration_secs"])
    rows = np.flatnonzero((states != HostState.COMPUTING) & (ends > from_secs) & (begins < to_secs))
    if len(rows) > MARKS_MAX:
        # Too short to be seen one by one: the longest are drawn.
        rows = np.sort(rows[np.argsort(begins[rows] - ends[rows])[:MARKS_MAX]])
    return [[float(begins[row]), float(ends[row]), int(states[row])] for row in rows]


def _levels(packed: Packed, from_secs: float, to_secs: float) -> dict[str, Any]:
    at = packed["levels.at_secs"]
    low, high = np.searchsorted(at, [from_secs, to_secs])
    # One more at each side, so that the lines reach the edges.
    rows = np.arange(max(0, low - 1), min(len(at), high + 1))
    if len(rows) > POINTS_MAX:
        rows = rows[np.linspace(0, len(rows) - 1, POINTS_MAX).astype(np.int64)]
    return {
        "at": at[rows].tolist(),
        "buffer": [line[rows].tolist() for line in packed["levels.buffer_secs"]],
        "standing": [line[rows].tolist() for line in packed["levels.standing"]],
    }
