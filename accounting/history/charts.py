"""The data of static/accounting/history.js: a history as plain numbers, with all words that the chart needs."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accounting.history.periods import Step
from accounting.history.reads import History, Line, Show

_UNITS = {Show.CREDIT: ("credits", 1e6), Show.TIME: ("hours", 3.6e9), Show.JOBS: ("jobs", 1)}


def chart_data(history: History) -> dict[str, Any]:
    """Labels and values of the bars: credits, hours or jobs per step, and what is to be said of each."""
    unit, scale = _UNITS[history.show]
    return {
        "unit": unit,
        "per": str(history.period.step),
        "labels": [_tick(line, history.period.step) for line in history.lines],
        "addresses": [address(history, line) for line in history.lines],
        "titles": [line.title for line in history.lines],
        "notes": [line.notes for line in history.lines],
        "marked": history.marked,
        "partial": [place for place, line in enumerate(history.lines) if line.is_partial],
        "totals": [line.total / scale for line in history.lines],
        "series": [
            {"name": layer.name, "colour": layer.colour, "values": [value / scale for value in layer.values]}
            for layer in history.series
        ],
    }


def address(history: History, line: Line) -> str:
    """Where a bar or a line of the table leads: a day's own page, or the days of a week or month."""
    if history.period.step is Step.DAY:
        return reverse("history_day", args=[line.start.isoformat()])
    query = {"from": line.start, "to": line.end, "step": Step.DAY, "show": history.show, "by": history.by}
    return f"{reverse('history')}?{urlencode(query)}"


def _tick(line: Line, step: Step) -> str:
    """The short label below a bar: "21 Nov", or "Nov 2026"."""
    return f"{line.start:%b %Y}" if step is Step.MONTH else f"{line.start.day} {line.start:%b}"
