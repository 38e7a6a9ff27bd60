"""A run's timeline as a Paje trace, which viewers of schedules (ViTE, pj_dump) read. Pure.

The format is that of "Pajé trace file format", version 1.3: event definitions, a hierarchy of types, and events in
order of time. Each instance of a processor is a container whose state is the project that it works for; a part of an
instance that several jobs share gets a container for each job at a time. The computer has its availability as a state,
contacts and late jobs as events, and the buffer of each kind of processor as a variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from emulator.engine.timeline.results import NO_LANE, HostState
from emulator.runs.packed_timeline import Packed

_DEFINITIONS: Final = {
    "PajeDefineContainerType": (0, ("Alias string", "Type string", "Name string")),
    "PajeDefineStateType": (1, ("Alias string", "Type string", "Name string")),
    "PajeDefineEventType": (2, ("Alias string", "Type string", "Name string")),
    "PajeDefineVariableType": (3, ("Alias string", "Type string", "Name string", "Color color")),
    "PajeDefineEntityValue": (4, ("Alias string", "Type string", "Name string", "Color color")),
    "PajeCreateContainer": (5, ("Time date", "Alias string", "Type string", "Container string", "Name string")),
    "PajeDestroyContainer": (6, ("Time date", "Type string", "Name string")),
    "PajeSetState": (7, ("Time date", "Type string", "Container string", "Value string", "Job int")),
    "PajeNewEvent": (8, ("Time date", "Type string", "Container string", "Value string")),
    "PajeSetVariable": (9, ("Time date", "Type string", "Container string", "Value double")),
}
_NUMBERS: Final = {name: number for name, (number, _fields) in _DEFINITIONS.items()}
_COLOURS: Final = (
    "0.12 0.47 0.71",
    "1.00 0.50 0.05",
    "0.17 0.63 0.17",
    "0.84 0.15 0.16",
    "0.58 0.40 0.74",
    "0.55 0.34 0.29",
    "0.89 0.47 0.76",
    "0.74 0.74 0.13",
    "0.09 0.75 0.81",
)
_GREY: Final = "0.80 0.80 0.80"
_STATES: Final = {
    HostState.COMPUTING: ("may compute", "0.60 0.87 0.60"),
    HostState.NO_GPU: ("no GPU", "0.90 0.90 0.55"),
    HostState.INACTIVE: ("in use", "0.90 0.75 0.55"),
    HostState.OFF: ("off", "0.50 0.50 0.50"),
}
_ROOT: Final = "0"
_NO_JOB: Final = -1


def lines(packed: Packed) -> Iterator[str]:
    """The trace, line by line."""
    yield from _header()
    containers, events = _work(packed)
    yield from _types(packed)
    yield _event("PajeCreateContainer", _time(0.0), "host", "HOST", _ROOT, "computer")
    for alias, name in containers:
        yield _event("PajeCreateContainer", _time(0.0), alias, "PROC", "host", name)
    for alias, _name in containers:
        yield _event("PajeSetState", _time(0.0), "WORK", alias, "idle", _NO_JOB)
    for at, _order, line in sorted(events + _of_the_computer(packed), key=lambda event: event[:2]):
        assert at >= 0
        yield line
    end = _time(packed.texts["duration_secs"])
    for alias, _name in containers:
        yield _event("PajeDestroyContainer", end, "PROC", alias)
    yield _event("PajeDestroyContainer", end, "HOST", "host")


def _header() -> Iterator[str]:
    for name, (number, fields) in _DEFINITIONS.items():
        yield f"%EventDef {name} {number}\n"
        yield from (f"% {field}\n" for field in fields)
        yield "%EndEventDef\n"


def _types(packed: Packed) -> Iterator[str]:
    yield _event("PajeDefineContainerType", "HOST", _ROOT, "Computer")
    yield _event("PajeDefineContainerType", "PROC", "HOST", "Processor")
    yield _event("PajeDefineStateType", "WORK", "PROC", "Work")
    yield _event("PajeDefineStateType", "AVAIL", "HOST", "Availability")
    yield _event("PajeDefineEventType", "RPC", "HOST", "Contact")
    yield _event("PajeDefineEventType", "MISS", "HOST", "Late job")
    for number, kind in enumerate(packed.texts["kinds"]):
        yield _event("PajeDefineVariableType", f"BUF{number}", "HOST", f"Buffer of {kind} (s)", _COLOURS[number % 9])
    yield _event("PajeDefineEntityValue", "idle", "WORK", "idle", _GREY)
    for number, project in enumerate(packed.texts["projects"]):
        for alias, kind in (("p", "WORK"), ("r", "RPC"), ("m", "MISS")):
            yield _event("PajeDefineEntityValue", f"{alias}{number}", kind, project, _COLOURS[number % 9])
    for state, (name, colour) in _STATES.items():
        yield _event("PajeDefineEntityValue", f"s{int(state)}", "AVAIL", name, colour)


Dated = tuple[float, int, str]


def _work(packed: Packed) -> tuple[list[tuple[str, str]], list[Dated]]:
    """The containers of all processors, and the changes of their states.

    Rows of the timeline are in the order in which they ended. Where two on an instance overlap, the second gets
    another container of that instance, the first that is free.
    """
    columns = [packed[f"blocks.{name}"].tolist() for name in ("start_secs", "end_secs", "lane", "project", "job")]
    rows = sorted(zip(*columns, strict=True), key=lambda row: (row[2], row[0], row[1]))
    slots: dict[int, int] = {lane: 1 for lane in range(len(packed.texts["lanes"]))}
    events: list[Dated] = []
    busy: list[tuple[float, int]] = []  # of this lane: until when, and the slot
    free: list[int] = []
    previous = None
    for start, end, lane, project, job in rows:
        if lane != previous:
            previous, busy, free = lane, [], []
            slots.setdefault(lane, 0)
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        slot = heappop(free) if free else len(busy)
        heappush(busy, (end, slot))
        slots[lane] = max(slots[lane], slot + 1)
        alias = _alias(lane, slot)
        events.append((start, 1, _event("PajeSetState", _time(start), "WORK", alias, f"p{project}", job)))
        # At the same time it may start another: idle comes first.
        events.append((end, 0, _event("PajeSetState", _time(end), "WORK", alias, "idle", _NO_JOB)))
    names = {lane: f"{kind} {number}" for lane, (kind, number) in enumerate(packed.texts["lanes"])}
    names[NO_LANE] = "CPU part of a GPU job"
    containers = [
        (_alias(lane, slot), names[lane] + (f" ({slot + 1})" if count > 1 else ""))
        for lane, count in sorted(slots.items(), key=lambda item: (item[0] == NO_LANE, item[0]))
        for slot in range(count)
    ]
    return containers, events


def _alias(lane: int, slot: int) -> str:
    return f"g{slot}" if lane == NO_LANE else f"l{lane}_{slot}"


def _of_the_computer(packed: Packed) -> list[Dated]:
    """Its availability, the contacts, the late jobs and the buffers."""
    events = [
        (at, 2, _event("PajeSetState", _time(at), "AVAIL", "host", f"s{state}", _NO_JOB))
        for at, state in zip(packed["states.from_secs"].tolist(), packed["states.state"].tolist(), strict=True)
    ]
    for kind, group, alias in (("RPC", "rpcs", "r"), ("MISS", "misses", "m")):
        rows = zip(packed[f"{group}.at_secs"].tolist(), packed[f"{group}.project"].tolist(), strict=True)
        events += [
            (at, 2, _event("PajeNewEvent", _time(at), kind, "host", f"{alias}{project}")) for at, project in rows
        ]
    times = packed["levels.at_secs"].tolist()
    for number, buffer in enumerate(packed["levels.buffer_secs"].tolist()):
        events += [
            (at, 2, _event("PajeSetVariable", _time(at), f"BUF{number}", "host", repr(secs)))
            for at, secs in zip(times, buffer, strict=True)
        ]
    return events


def _time(secs: float) -> str:
    """Without an exponent, which not every reader takes."""
    return f"{secs:.9f}"


def _event(name: str, *values: str | int) -> str:
    return " ".join([str(_NUMBERS[name]), *(_quoted(value) for value in values)]) + "\n"


def _quoted(value: str | int) -> str:
    """Strings with spaces stand in double quotes, which they cannot contain."""
    text = "".join(" " if char.isspace() or not char.isprintable() else char for char in str(value)).replace('"', "'")
    return f'"{text}"' if not text or " " in text or "%" in text else text
