"""Read when a computer was available from a trace in the form of the Failure Trace Archive.

The archive has traces of volunteers' computers (SETI@home), desktops, grids and clusters in one form: tables with tabs
between columns. `event_trace.tab` has a line for each interval: event_id, component_id, node_id, platform_id,
node_name, event_type (1: available, 0: not), event_start_time, event_stop_time (seconds since 1970), event_end_reason.
Lines that begin with "#" are remarks; one that names the columns gives their order. `component.tab` says from when to
when each node was watched (trace_start, trace_end). Pure: lines in, a trace out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from emulator.engine.scenario import MAX_TRACE_INTERVALS, Availability, Scenario
from emulator.files.sections import ScenarioFileError

EVENTS: Final = "event_trace.tab"
COMPONENTS: Final = "component.tab"
LINE_BYTES_MAX: Final = 4096
EVENTS_MAX: Final = 10 * MAX_TRACE_INTERVALS  # of one node, before touching intervals are joined
ALWAYS: Final = Availability()
_COLUMNS: Final = (
    "event_id",
    "component_id",
    "node_id",
    "platform_id",
    "node_name",
    "event_type",
    "event_start_time",
    "event_stop_time",
    "event_end_reason",
)
_NOTHING: Final = ("", "NULL", "\\N")

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NodeTrace:
    """When a node was available, and what the file has besides."""

    node: str
    availability: Availability
    nodes: int  # how many the file has
    components: int  # how many the node has; the trace is that of its first


def read_trace(lines: Iterable[bytes], node: str = "", watched: Interval | None = None) -> NodeTrace:
    """The trace of a node, by its id or name; the file's first if none is named.

    Where the file says only when a node was not available, it counts as available between. `watched`: from when to
    when; else from the first event to the last. Raises ScenarioFileError with the line, and ScenarioError.
    """
    found = _Node(node)
    for number, columns in _table(EVENTS, lines, _COLUMNS):
        found.take(number, columns)
    if not found.events:
        raise ScenarioFileError(EVENTS, "", 0, f"it has no events of a node {node!r}" if node else "it has no events")
    return NodeTrace(found.node, _availability(found, watched), len(found.nodes), len(found.components))


def read_watched(lines: Iterable[bytes], node: str) -> Interval | None:
    """From when to when `component.tab` says that a node was watched; None if it does not say.

    Raises ScenarioFileError.
    """
    for number, columns in _table(COMPONENTS, lines, ()):
        missing = {"node_id", "trace_start", "trace_end"} - set(columns)
        if missing:
            why = f"no line names the columns, or {sorted(missing)[0]} is none of them"
            raise ScenarioFileError(COMPONENTS, "", number, why)
        is_node = node in (columns["node_id"], columns.get("node_name"))
        if is_node and not {columns["trace_start"], columns["trace_end"]} & set(_NOTHING):
            return _interval(COMPONENTS, number, columns["trace_start"], columns["trace_end"])
    return None


def with_trace(scenario: Scenario, trace: NodeTrace) -> Scenario:
    """The scenario on a computer that may compute when the trace says so, and only then."""
    note = f"The computer is available as the node {trace.node} of the trace was."
    host = replace(scenario.host, on=trace.availability, active=ALWAYS)
    return replace(scenario, host=host, notes=(*scenario.notes, note))


class _Node:
    """What the file says of one node."""

    def __init__(self, node: str) -> None:
        self.wanted = self.node = node
        self.nodes: set[str] = set()
        self.components: dict[str, None] = {}
        self.events: list[tuple[float, float, bool]] = []

    def take(self, number: int, columns: Mapping[str, str]) -> None:
        """A line of the table, if it is of this node and of its first component."""
        node = columns["node_id"]
        self.nodes.add(node)
        if not self.node:
            self.node = node
        if self.node not in (node, columns.get("node_name")):
            return
        self.components[columns["component_id"]] = None
        if len(self.components) > 1 and columns["component_id"] != next(iter(self.components)):
            return
        if columns["event_type"] not in ("0", "1"):
            why = f"event_type is {columns['event_type'][:20]!r}, not 0 or 1"
            raise ScenarioFileError(EVENTS, "", number, why)
        if len(self.events) >= EVENTS_MAX:
            raise ScenarioFileError(EVENTS, "", number, f"the node has more than {EVENTS_MAX} events")
        since, until = _interval(EVENTS, number, columns["event_start_time"], columns["event_stop_time"])
        self.events.append((since, until, columns["event_type"] == "1"))


def _table(file: str, lines: Iterable[bytes], known: tuple[str, ...]) -> Iterable[tuple[int, dict[str, str]]]:
    """The lines as columns by name, with their numbers. The order is that of `known` unless a line names another."""
    names = known
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_BYTES_MAX:
            raise ScenarioFileError(file, "", number, f"longer than {LINE_BYTES_MAX} bytes")
        text = line.decode("utf-8", "replace").strip("\r\n")
        cells = [cell.strip() for cell in text.lstrip("#").split("\t" if "\t" in text else None)]
        if "node_id" in cells:
            names = tuple(cells)
        elif text.strip() and not text.startswith("#"):
            if len(cells) < len(names) - 1 or len(cells) > len(names) + 1 > 1:
                why = f"there are {len(cells)} columns, not {len(names)}"
                raise ScenarioFileError(file, "", number, why)
            # The last column, the reason of an event's end, is left out in some of the archive's files.
            yield number, dict(zip(names, cells, strict=False))


def _interval(file: str, number: int, start: str, stop: str) -> Interval:
    try:
        since, until = float(start), float(stop)
    except ValueError:
        since = until = math.nan
    if not (0 <= since <= until < 1e12):
        why = f"{start[:30]!r} to {stop[:30]!r} are not two times in order, in seconds"
        raise ScenarioFileError(file, "", number, why)
    return since, until


def _availability(found: _Node, watched: Interval | None) -> Availability:
    """The node's intervals from 0 on, joined where they touch or overlap."""
    first, last = watched or (min(event[0] for event in found.events), max(event[1] for event in found.events))
    if not any(is_up for _, _, is_up in found.events):
        up = _between(_joined([(since, until) for since, until, _ in found.events]), first, last)
    else:
        up = _joined([(since, until) for since, until, is_up in found.events if is_up])
    within = [(max(since, first) - first, min(until, last) - first) for since, until in up]
    return Availability.of_trace(tuple((since, until) for since, until in within if since < until), last - first)


def _joined(intervals: list[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for since, until in sorted(intervals):
        if joined and since <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(until, joined[-1][1]))
        else:
            joined.append((since, until))
    return joined


def _between(intervals: list[Interval], first: float, last: float) -> list[Interval]:
    """What the intervals leave of the time from first to last."""
    ends = [first, *(until for _, until in intervals)]
    starts = [*(since for since, _ in intervals), last]
    return [(since, until) for since, until in zip(ends, starts, strict=True) if since < until]
