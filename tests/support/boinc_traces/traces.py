"""Reads credit traces: what BOINC's own validator and feeder did to a database, phase by phase.

A folder of ``phases.jsonl``, ``inputs.jsonl``, ``state_app.csv``, ``state_app_version.csv`` and
``state_host_app_version.csv``, each plain or gzipped (``.gz``); docs/explanation/credit.md, "Traces", has their
columns.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final

ANONYMOUS_BASE: Final = 1_000_000
"""A host record of anonymous platform -k at an app has the version id app × this + k."""
MAX_LINE_CHARS: Final = 10_000_000
COLUMNS: Final = {
    "state_app.csv": ("phase", "app_id", "host_scale_check", "target_nresults", "min_avg_pfc"),
    "state_app_version.csv": (
        *("phase", "id", "appid", "platformid", "version_num", "plan_class"),
        *("pfc_n", "pfc_avg", "pfc_scale", "expavg_credit", "expavg_time"),
    ),
    "state_host_app_version.csv": (
        *("phase", "host_id", "app_version_id", "pfc_n", "pfc_avg", "et_n", "et_avg", "et_var", "et_q"),
        *("max_jobs_per_day", "n_jobs_today", "turnaround_n", "turnaround_avg", "turnaround_var", "turnaround_q"),
        "consecutive_valid",
    ),
}
TEXT_COLUMNS: Final = ("name", "plan_class")


class TraceError(Exception):
    """A trace that cannot be read: names the file, the line and the fault."""

    def __init__(self, path: Path, line: int, fault: str) -> None:
        super().__init__(f"{path}, line {line}: {fault}" if line else f"{path}: {fault}")


@dataclass(frozen=True, slots=True)
class TracePhase:
    """One step in time: "validate" (a drain of an app's queue), "feeder" or "load" (rows were added)."""

    number: int
    kind: str
    app_id: int
    process: str
    max_granted_credit: float | None


@dataclass(frozen=True, slots=True)
class TraceResult:
    """A result as the validator saw it, its verdict, its claim (None: no claim) and its grant."""

    id: int
    host_id: int
    app_version_id: int
    elapsed_secs: float
    cpu_secs: float
    peak_flops: float
    sent_at: float
    received_at: float
    is_runtime_outlier: bool
    state_after: int
    claimed: float | None
    mode: str | None
    granted: float


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One workunit handled. ``credit``: of the workunit afterwards, 0 without a canonical result."""

    phase: int
    seq: int
    workunit_id: int
    app_id: int
    is_late: bool
    fpops_est: float
    fpops_bound: float
    min_quorum: int
    target_nresults: int
    canonical_before: int
    canonical_after: int
    canonical_granted: float | None
    credit: float
    results: tuple[TraceResult, ...]


Row = dict[str, float]


@dataclass(slots=True)
class TraceState:
    """The three tables after a phase: rows of numbers by key; (host, version id) for host records."""

    apps: dict[int, Row] = field(default_factory=dict)
    versions: dict[int, Row] = field(default_factory=dict)
    plan_classes: dict[int, str] = field(default_factory=dict)
    hosts: dict[tuple[int, int], Row] = field(default_factory=dict)


@dataclass(slots=True)
class Trace:
    """A whole trace; ``states[0]`` is the state at its start, ``events`` are by phase, in the order handled."""

    phases: list[TracePhase]
    events: dict[int, list[TraceEvent]]
    states: dict[int, TraceState]


def read_trace(folder: Path) -> Trace:
    """The trace in this folder; raises TraceError if a file is missing or has something unreadable."""
    states: dict[int, TraceState] = {}
    for row, _ in _csv(folder, "state_app.csv"):
        _state(states, row).apps[int(row["app_id"])] = row
    for row, texts in _csv(folder, "state_app_version.csv"):
        state = _state(states, row)
        state.versions[int(row["id"])] = row
        state.plan_classes[int(row["id"])] = texts["plan_class"]
    for row, _ in _csv(folder, "state_host_app_version.csv"):
        _state(states, row).hosts[(int(row["host_id"]), int(row["app_version_id"]))] = row
    phases = [_phase(reader) for reader in _lines(folder, "phases.jsonl")]
    events: dict[int, list[TraceEvent]] = {}
    for reader in _lines(folder, "inputs.jsonl"):
        event = _event(reader)
        events.setdefault(event.phase, []).append(event)
    for group in events.values():
        group.sort(key=lambda event: event.seq)
    phases.sort(key=lambda phase: phase.number)
    trace = Trace(phases, events, states)
    _check_whole(folder, trace)
    return trace


def _check_whole(folder: Path, trace: Trace) -> None:
    """Every phase needs its state and every event its phase: nothing may be left out in silence."""
    numbers = [0, *(phase.number for phase in trace.phases)]
    for number in numbers:
        if number not in trace.states:
            raise TraceError(folder, 0, f"no state of phase {number}")
    drains = {phase.number: phase.app_id for phase in trace.phases if phase.kind == "validate"}
    for number, app_id in drains.items():
        if app_id not in trace.states[number].apps:
            raise TraceError(folder, 0, f"phase {number} is of app {app_id}, which has no row")
    for number in trace.events:
        if number not in drains:
            raise TraceError(folder, 0, f"workunits of phase {number}, which is no phase of kind validate")


def _state(states: dict[int, TraceState], row: Row) -> TraceState:
    return states.setdefault(int(row["phase"]), TraceState())


@dataclass(slots=True)
class _Fields:
    """One JSON object, with its position."""

    path: Path
    line: int
    values: Mapping[str, Any]

    def number(self, name: str) -> float:
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise TraceError(self.path, self.line, f"{name} must be a number, not {value!r}")
        return value

    def number_or_none(self, name: str) -> float | None:
        return None if self.values.get(name) is None else self.number(name)

    def whole(self, name: str) -> int:
        return int(self.number(name))

    def text(self, name: str, default: str = "") -> str:
        return str(self.values.get(name) or default)

    def parts(self, name: str) -> list[_Fields]:
        value = self.values.get(name)
        if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
            raise TraceError(self.path, self.line, f"{name} must be a list of objects")
        return [_Fields(self.path, self.line, part) for part in value]


def _phase(fields: _Fields) -> TracePhase:
    kind = fields.text("type")
    if kind not in ("validate", "feeder", "load"):
        raise TraceError(fields.path, fields.line, f"type must be validate, feeder or load, not {kind!r}")
    app_id = fields.whole("app") if kind == "validate" else 0
    return TracePhase(fields.whole("phase"), kind, app_id, fields.text("process"), _max_granted_credit(fields))


def _max_granted_credit(fields: _Fields) -> float | None:
    """From the validator's arguments; None if they do not say."""
    arguments = fields.values.get("args") or []
    given = arguments if isinstance(arguments, list) else [arguments]
    words = [word for argument in given for word in str(argument).replace("=", " ").split()]
    for name, value in pairwise(words):
        if name.lstrip("-") == "max_granted_credit":
            try:
                return float(value)
            except ValueError as error:
                raise TraceError(fields.path, fields.line, f"max_granted_credit is {value!r}") from error
    return None


def _event(fields: _Fields) -> TraceEvent:
    kind = fields.text("kind")
    if kind not in ("set", "late"):
        raise TraceError(fields.path, fields.line, f"kind must be set or late, not {kind!r}")
    return TraceEvent(
        phase=fields.whole("phase"),
        seq=fields.whole("seq"),
        workunit_id=fields.whole("wu"),
        app_id=fields.whole("app"),
        is_late=kind == "late",
        fpops_est=fields.number("fpops_est"),
        fpops_bound=fields.number("fpops_bound"),
        min_quorum=fields.whole("min_quorum"),
        target_nresults=fields.whole("target_nresults"),
        canonical_before=fields.whole("canonical_before"),
        canonical_after=fields.whole("canonical_after"),
        canonical_granted=fields.number_or_none("canonical_granted"),
        credit=fields.number_or_none("credit") or 0.0,
        results=tuple(_result(part) for part in fields.parts("results")),
    )


def _result(fields: _Fields) -> TraceResult:
    return TraceResult(
        id=fields.whole("id"),
        host_id=fields.whole("host"),
        app_version_id=fields.whole("app_version_id"),
        elapsed_secs=fields.number("elapsed_time"),
        cpu_secs=fields.number("cpu_time"),
        peak_flops=fields.number("flops_estimate"),
        sent_at=fields.number("sent_time"),
        received_at=fields.number("received_time"),
        is_runtime_outlier=bool(fields.number_or_none("runtime_outlier")),
        state_after=fields.whole("state_after"),
        claimed=fields.number_or_none("claimed"),
        mode=fields.text("mode") or None,
        granted=fields.number_or_none("granted") or 0.0,
    )


def _open(folder: Path, name: str) -> IO[str]:
    """The file, or the same gzipped."""
    plain, zipped = folder / name, folder / f"{name}.gz"
    try:
        if plain.exists():
            return plain.open(encoding="utf-8-sig", newline="")
        return gzip.open(zipped, "rt", encoding="utf-8-sig", newline="")
    except OSError as error:
        raise TraceError(plain, 0, f"cannot be read, nor {zipped.name}: {error.strerror}") from error


def _lines(folder: Path, name: str) -> Iterator[_Fields]:
    path = folder / name
    line = 0
    with _open(folder, name) as file:
        try:
            while text := file.readline(MAX_LINE_CHARS):
                line += 1
                if not text.strip():
                    continue
                values = json.loads(text)
                if not isinstance(values, dict):
                    raise TraceError(path, line, "not a JSON object")
                yield _Fields(path, line, values)
        except (ValueError, EOFError, OSError) as error:
            raise TraceError(path, line or 1, str(error)) from error


def _csv(folder: Path, name: str) -> Iterator[tuple[Row, dict[str, str]]]:
    """Each row's numbers by column, and its columns of text; unused columns may hold anything."""
    path = folder / name
    numeric = [column for column in COLUMNS[name] if column not in TEXT_COLUMNS]
    line = 1
    with _open(folder, name) as file:
        try:
            reader = csv.DictReader(file, strict=True)
            if missing := set(COLUMNS[name]).difference(reader.fieldnames or ()):
                raise TraceError(path, 1, f"no column {', '.join(sorted(missing))}")
            for given in reader:
                line += 1
                texts = {column: given.get(column) or "" for column in TEXT_COLUMNS}
                numbers = {column: float(given[column]) for column in numeric}
                if not all(map(math.isfinite, numbers.values())):
                    raise TraceError(path, line, "a number that is not finite")
                yield numbers, texts
        except (ValueError, TypeError, csv.Error, EOFError, OSError) as error:
            raise TraceError(path, line, str(error)) from error
