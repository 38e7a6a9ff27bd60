"""The data of static/accounting/history.js: a history as plain numbers, with all words that the chart needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext

from accounting.history import texts
from accounting.history.choices import Choices
from accounting.history.compared import Comparison, Overlay
from accounting.history.periods import Step
from accounting.history.reads import History, Line, Show

_SCALES: Final = {Show.CREDIT: 1e6, Show.TIME: 3.6e9, Show.JOBS: 1}


def chart_data(history: History, choices: Choices, beside: Comparison) -> dict[str, Any]:
    """Build labels and values of the bars: credits, hours or tasks per step, and the text for each.

    ``lines``: values beside the bars, with their names. ``running``: the values add up from step to step.
    """
    show, step = history.show, history.period.step
    scale = _SCALES[show]
    is_running = choices.curve is Overlay.TOTAL

    def values(amounts: Iterable[int]) -> list[float]:
        return [amount / scale for amount in (accumulate(amounts) if is_running else amounts)]

    lines = []
    if beside.other:
        lines.append(
            {"name": texts.range_text(beside.first, beside.last), "values": values(beside.other), "dashed": True}
        )
    if beside.means:
        lines.append({"name": gettext("7-day average"), "values": values(beside.means), "dashed": False})
    return {
        "title": texts.chart_title(show, step, is_running=is_running, is_granted=choices.only.app_id is not None),
        "unit": gettext(texts.UNITS[show]),
        "x": gettext(texts.UTC_STEPS[step]),
        "y": texts.axis_title(show, step, choices.scale, is_running=is_running),
        "switch": gettext("Show or hide in the chart"),
        "is_count": show is Show.JOBS,
        "labels": [_tick(line, step) for line in history.lines],
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
    """Return the link of a bar or a line of the table: a day's own page, or the days of a week or month."""
    if history.period.step is Step.DAY:
        return reverse("history_day", args=[line.start.isoformat()])
    query = {"from": line.start, "to": line.end, "step": Step.DAY, **choices.query}
    return f"{reverse('history')}?{urlencode(query)}"


def _tick(line: Line, step: Step) -> str:
    """Return the short label below a bar: "21 Nov", or "Nov 2026"."""
    return date_format(line.start, "M Y" if step is Step.MONTH else "MONTH_DAY_FORMAT")
