"""The answer of a run's process, and whether it is one: a policy from outside could write anything. Pure."""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass
from typing import Any, Final

from emulator.advice.stored import check_stored
from emulator.engine.timeline.results import ProjectResult
from emulator.runs.comparison import ATTAINABLE, FIGURES
from emulator.runs.packed_timeline import unpack

TIMELINE_BYTES_MAX: Final = 512 * 1024 * 1024  # unpacked


@dataclass(frozen=True, slots=True)
class Answer:
    """The process's answer: ``ok`` and the bytes that came with it, or ``fault``, a sentence.

    ``has_begun`` is False if the process ended without any sign of life.
    """

    ok: Any
    data: bytes
    fault: str
    has_begun: bool = True


def check_answer(answer: Answer, has_timeline: bool) -> None:
    """Raises ValueError unless it is a fault or a result: its figures, its projects, and its timeline if it has one."""
    if answer.fault:
        return
    found = answer.ok
    parts = {"figures_of_merit", "projects", "cpu_secs"} | ({"answer"} if has_timeline else set())
    if not isinstance(found, dict) or set(found) != parts:
        raise ValueError("its parts are others")
    figures = found["figures_of_merit"]
    if not isinstance(figures, dict) or set(figures) != set(FIGURES):
        raise ValueError("its figures are others")
    known = [value for name, value in figures.items() if value is not None or name not in ATTAINABLE]
    if not all(map(_is_number, [*known, found["cpu_secs"]])):
        raise ValueError("a figure is no number")
    if not isinstance(found["projects"], list) or not found["projects"]:
        raise ValueError("it has no projects")
    for row in found["projects"]:
        _check_project(row)
    if has_timeline:
        check_stored(found["answer"])
        _check_timeline(answer.data)


def _check_project(row: Any) -> None:
    if not isinstance(row, dict) or set(row) != set(ProjectResult.__slots__):
        raise ValueError("a project has other fields")
    if not isinstance(row["name"], str) or len(row["name"]) > 255 or not isinstance(row["instance_secs"], list):
        raise ValueError("a project has no name")
    numbers = [value for name, value in row.items() if name not in ("name", "instance_secs")]
    if not all(map(_is_number, [*numbers, *row["instance_secs"]])):
        raise ValueError("a project has something else than numbers")


def _check_timeline(data: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > TIMELINE_BYTES_MAX:
                raise ValueError("its timeline is too large")
        unpack(data)
    except (zipfile.BadZipFile, KeyError, EOFError, OSError) as error:
        raise ValueError(f"its timeline is none: {error}") from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
