"""The data of static/accounting/history.js: a history as plain numbers, with all words that the chart needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accounting.history.choices import Choices
from accounting.history.compared import Beside, Curve
from accounting.history.periods import Step
from accounting.history.reads import History, Line, Show

_UNITS = {Show.CREDIT: ("credits", 1e6), Show.TIME: ("hours", 3.6e9), Show.JOBS: ("jobs", 1)}


def chart_data(history: History, choices: Choices, beside: Beside) -> dict[str, Any]:
    """Labels and values of the bars: credits, hours or jobs per step, and what is to be said of each.

    ``lines``: values beside the bars, with their names. ``running``: the values add up from step to step.
    """
    unit, scale = _UNITS[history.show]
    is_running = choices.curve is Curve.TOTAL

    def values(amounts: Iterable[int]) -> list[float]:
        return [amount / scale for amount in (accumulate(amounts) if is_running else amounts)]

    lines = []
    if beside.other:
        lines.append({"name": f"{beside.first} to {beside.last}", "values": values(beside.other), "dashed": True})
    if beside.means:
        lines.append({"name": "7-day mean", "values": values(beside.means), "dashed": False})
    return {
        "unit": unit,
        "per": str(history.period.step),
        "labels": [_tick(line, history.period.step) for line in history.lines],
        "addresses": [address(history, line, choices) for line in history.lines],
        "titles": [line.title for line in history.lines],
        "notes": [line.notes for line in history.lines],
        "marked": history.marked,
        "partial": [place for place, line in enumerate(history.lines) if line.is_partial],
        "totals": values(line.total for line in history.lines),
        "running": is_running,
        "scale": str(choices.scale),
        "lines": lines,
        "series": [
            {"name": layer.name, "colour": layer.colour, "values": values(layer.values)} for layer in history.series
        ],
    }


def address(history: History, line: Line, choices: Choices) -> str:
    """Where a bar or a line of the table leads: a day's own page, or the days of a week or month."""
    if history.period.step is Step.DAY:
        return reverse("history_day", args=[line.start.isoformat()])
    query = {"from": line.start, "to": line.end, "step": Step.DAY, **choices.query}
    return f"{reverse('history')}?{urlencode(query)}"


def _tick(line: Line, step: Step) -> str:
    """The short label below a bar: "21 Nov", or "Nov 2026"."""
    return f"{line.start:%b %Y}" if step is Step.MONTH else f"{line.start.day} {line.start:%b}"
