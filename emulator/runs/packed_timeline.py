"""A run's timeline and decisions as one compressed block of columns, and back. Pure.

The block is NumPy's own zip of arrays, read without pickle; texts (names of projects and kinds) are JSON in it.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from emulator.engine.timeline.results import Result, Timeline

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BLOCK_COLUMNS: Final = ("start_secs", "end_secs", "lane", "project", "job", "usage", "by_deadline")
RPC_COLUMNS: Final = ("at_secs", "project", "asked_secs", "got", "reported", "answered")
MISS_COLUMNS: Final = ("at_secs", "project", "job", "late_secs")
DECISION_COLUMNS: Final = ("at_secs", "kind", "reason", "project", "job", "processor", "amount")


@dataclass(frozen=True, slots=True)
class Packed:
    """The columns of a run, by name ("blocks.start_secs", …), and its texts.

    ``texts``: duration_secs, kinds, lanes ((kind, number) each), projects, blocks_complete, decisions_dropped.
    """

    columns: dict[str, npt.NDArray[Any]]
    texts: dict[str, Any]

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]


def pack(result: Result) -> bytes:
    """Pack the timeline (which must have been recorded) and the decisions."""
    timeline = result.timeline
    if timeline is None:
        raise ValueError("the run has no timeline")
    columns: dict[str, npt.NDArray[Any]] = {}
    for group, source, names in (
        ("blocks", timeline.blocks, BLOCK_COLUMNS),
        ("rpcs", timeline.rpcs, RPC_COLUMNS),
        ("misses", timeline.misses, MISS_COLUMNS),
        ("decisions", result.decisions, DECISION_COLUMNS),
    ):
        columns |= {f"{group}.{name}": np.asarray(getattr(source, name)) for name in names}
    columns |= _levels(timeline)
    columns |= {
        "bins.busy": timeline.bins.busy.astype(np.float32),
        "bins.off": timeline.bins.off.astype(np.float32),
        "bins.instances": timeline.bins.instances,
        "states.from_secs": np.asarray(timeline.state_from_secs),
        "states.state": np.asarray(timeline.states),
    }
    texts = {
        "duration_secs": timeline.duration_secs,
        "kinds": timeline.kinds,
        "lanes": timeline.lanes,
        "projects": timeline.projects,
        "bin_secs": timeline.bins.width_secs,
        "blocks_complete": timeline.blocks.complete,
        "decisions_dropped": result.decisions.dropped,
    }
    columns["texts"] = np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8)
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, **columns)
    return out.getvalue()


def _levels(timeline: Timeline) -> dict[str, npt.NDArray[Any]]:
    levels = timeline.levels
    return {
        "levels.at_secs": np.asarray(levels.at_secs),
        "levels.buffer_secs": np.asarray([list(kind) for kind in levels.buffer_secs]),
        "levels.standing": np.asarray([list(project) for project in levels.standing]),
    }


def unpack(data: bytes) -> Packed:
    """Unpack the output of `pack`; ValueError for anything else."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files}
    texts = json.loads(columns.pop("texts").tobytes())
    return Packed(columns, texts)
