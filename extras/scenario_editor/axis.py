"""The time axis of a scenario's events as a drawing: a line for the computer, and one for each project with events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from emulator.engine.scenario import DAY_SECS, Downtime, Scenario
from emulator.engine.scenario.events import Event
from extras.scenario_editor.fields import EVENTS

WIDTH: Final = 720
LEFT: Final = 110
ROW: Final = 26
TOP: Final = 8
LINES_MAX: Final = 24
BARS_MAX: Final = 200
NAME_CHARS: Final = 14


@dataclass(frozen=True, slots=True)
class Mark:
    """An event on its line. `about` is its day and a description."""

    x: int
    number: int
    day: float
    title: str
    project: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the drawing: ``bars`` are the downtimes, as left end and width; ``down_days`` the same by day."""

    name: str
    short: str
    y: int
    marks: list[Mark]
    bars: list[tuple[int, int]]
    down_days: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """The drawing. ``ticks`` are x and day; ``marks`` all events, for the table."""

    width: int
    height: int
    left: int
    bottom: int
    lines: list[Line]
    ticks: list[tuple[int, float]]
    marks: list[Mark]
    left_out: int


def axis_of(scenario: Scenario, days: float, computer: str) -> Axis | None:
    """Draw the axis for a run of this many days; None if nothing is planned."""
    events = [event for event in scenario.events if event.at_secs <= days * DAY_SECS]
    down = {project.name: project.downtimes for project in scenario.projects if project.downtimes}
    if not scenario.events and not down:
        return None
    scale = (WIDTH - LEFT - 16) / days
    marks = [
        Mark(
            round(LEFT + event.at_secs / DAY_SECS * scale),
            number,
            event.at_secs / DAY_SECS,
            str(EVENTS[type(event).__name__][0]),
            _project(event),
        )
        for number, event in enumerate(sorted(events, key=lambda event: event.at_secs), 1)
    ]
    names = [
        name for name in ("", *down, *(mark.project for mark in marks)) if name or any(not m.project for m in marks)
    ]
    names = list(dict.fromkeys(names))
    lines = [
        Line(
            name or computer,
            _shortened(name or computer),
            TOP + ROW * place + ROW // 2,
            [mark for mark in marks if mark.project == name],
            [
                (round(LEFT + start * scale), max(1, round((end - start) * scale)))
                for start, end in _down_days(down.get(name, ()), days)
            ],
            _down_days(down.get(name, ()), days),
        )
        for place, name in enumerate(names[:LINES_MAX])
    ]
    bottom = TOP + ROW * len(lines)
    return Axis(WIDTH, bottom + 40, LEFT, bottom, lines, _ticks(days, scale), marks, len(scenario.events) - len(events))


def _project(event: Event) -> str:
    return getattr(event, "project", "")


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_CHARS else f"{name[: NAME_CHARS - 1]}…"


def _down_days(downtimes: tuple[Downtime, ...], days: float) -> list[tuple[float, float]]:
    """Return the first and last day of each downtime within the run."""
    spans: list[tuple[float, float]] = []
    for downtime in downtimes:
        start = downtime.from_secs / DAY_SECS
        while start < days and len(spans) < BARS_MAX:
            spans.append((start, min(start + downtime.length_secs / DAY_SECS, days)))
            if not downtime.every_secs:
                break
            start += downtime.every_secs / DAY_SECS
    return spans


def _ticks(days: float, scale: float) -> list[tuple[int, float]]:
    """Return four to nine round days."""
    steps = (base * 10.0**power for power in range(-3, 6) for base in (1, 2, 5))
    step = next(step for step in steps if days / step <= 8)
    return [(round(LEFT + place * step * scale), round(place * step, 6)) for place in range(int(days / step) + 1)]
