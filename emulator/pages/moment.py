"""A moment of a run (emulator.engine.replay.Moment, as JSON) as the page shows it: words, tables, and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from emulator.pages.texts import moment_texts
from emulator.runs.packed_timeline import Packed

SHOWN_BUFFERS: Final = 3  # the picture shows no more than this many times the buffer
LEAST_NAMED_PERCENT: Final = 5.0  # a narrower bar has no number
JOBS_MAX: Final = 300
TICKS: Final = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 720, 1440, 2880, 8760, 87_600, 876_000)  # hours
TICKS_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """A job on a lane, in per cent of the picture's width."""

    left: float
    width: float
    colour: int
    job: int
    is_late: bool
    has_name: bool
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """An instance of a kind of processor."""

    name: str
    bars: list[Bar]


@dataclass(frozen=True, slots=True)
class TimeMark:
    """A time in the picture: in per cent of its width, and in hours."""

    left: float
    text: str


def shown_moment(moment: dict[str, Any], packed: Packed, palette: list[int]) -> dict[str, Any]:
    """Return the template values."""
    names = packed.texts["projects"]
    end_secs = _end_secs(moment)
    jobs = moment["jobs"]
    return {
        "words": moment_texts.in_words(moment, names),
        "lanes": _lanes(moment, names, palette, end_secs),
        "ticks": _ticks(end_secs),
        "marks": [
            TimeMark(min(100.0, 100 * moment[name] / end_secs), moment_texts.hours(moment[name]))
            for name in ("buffer_min_secs", "buffer_total_secs")
        ],
        "ends_early": any(row[2] > end_secs + 1 for row in moment["stretches"]),
        "is_cut": moment["is_cut"],
        "processors": [moment_texts.processor_row(row, moment) for row in moment["processors"]],
        "has_requests": moment["request"] is not None,
        "projects": [
            moment_texts.project_row(row, names, moment) | {"colour": palette[row["project"]]}
            for row in sorted(moment["projects"], key=lambda row: (row["place"] == 0, row["place"], row["project"]))
        ],
        "jobs": [moment_texts.job_row(row, names) | {"colour": palette[row["project"]]} for row in jobs[:JOBS_MAX]],
        "nmore_jobs": max(0, len(jobs) - JOBS_MAX),
        "was_searched": moment["was_searched"],
        "legend": [
            (names[row["project"]], palette[row["project"]])
            for row in moment["projects"]
            if any(job["project"] == row["project"] for job in jobs)
        ],
    }


def _end_secs(moment: dict[str, Any]) -> float:
    """Return where the picture ends: at the last job, but not far beyond the buffer."""
    total: float = moment["buffer_total_secs"]
    last = max((row[2] for row in moment["stretches"]), default=0.0)
    return min(max(last, 1.05 * total), SHOWN_BUFFERS * total)


def _lanes(moment: dict[str, Any], names: list[str], palette: list[int], end_secs: float) -> list[Lane]:
    late = {row["job"] for row in moment["jobs"] if row["is_late"]}
    lanes = [Lane(f"{kind} {number}", []) for kind, number in moment["lanes"]]
    for lane, begin, end, project, job in moment["stretches"]:
        if lane < 0 or begin >= end_secs:
            continue
        left, right = 100 * begin / end_secs, 100 * min(end, end_secs) / end_secs
        title = moment_texts.bar_title(job, names[project], begin, end, job in late)
        width = round(right - left, 3)
        has_name = width > LEAST_NAMED_PERCENT
        lanes[lane].bars.append(Bar(round(left, 3), width, palette[project], job, job in late, has_name, title))
    return lanes


def _ticks(end_secs: float) -> list[TimeMark]:
    hours = end_secs / 3600
    step = next(step for step in TICKS if hours / step <= TICKS_MAX or step == TICKS[-1])
    return [TimeMark(100 * at * step / hours, f"{at * step:g}") for at in range(int(hours / step) + 1)]
