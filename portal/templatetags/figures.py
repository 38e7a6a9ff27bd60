"""Figures of the dashboard: a value with its unit, and the last day as a line."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from portal.dashboard.registry import Figure, Unit, label_text
from portal.dashboard.rules import Points
from portal.dashboard.texts import span
from portal.templatetags import display

register = template.Library()

_WIDTH, _HEIGHT = 240, 40
_NOTHING: Final = "\u2013"


@register.simple_tag
def figure_value(figure: Figure, value: float | None) -> str:
    """The value in the unit that reads best."""
    if value is None:
        return _NOTHING
    match figure.unit:
        case Unit.SECS:
            return secs_text(value)
        case Unit.BYTES:
            return display.nbytes(value)
        case Unit.PERCENT:
            text = display.localised(f"{value:.1f}".rstrip("0").rstrip(".")) + "\u00a0%"
        case Unit.FACTOR:
            text = display.significant(value)
        case _:
            text = (
                display.count(round(value))
                if value >= 100 or value == int(value)
                else display.localised(f"{value:.3g}")
            )
    return f"{text}\u00a0{figure.per}" if figure.per else text


@register.simple_tag
def figure_line(figure: Figure, points: Points) -> SafeString | str:
    """The last day as a zero-based line; the numbers are on the figure's page."""
    if len(points) < 2:
        return ""
    first, last = points[0][0], points[-1][0]
    highest = max(value for _, value in points)
    lowest = min(0.0, *(value for _, value in points))
    height = (highest - lowest) or 1.0
    line = " ".join(
        f"{(at - first) / ((last - first) or 1) * _WIDTH:.1f},"
        f"{_HEIGHT - 2 - (value - lowest) / height * (_HEIGHT - 4):.1f}"
        for at, value in points
    )
    least = min(value for _, value in points)
    label = _("%(figure)s, last day: from %(least)s to %(most)s, now %(now)s") % {
        "figure": figure.title,
        "least": figure_value(figure, least),
        "most": figure_value(figure, highest),
        "now": figure_value(figure, points[-1][1]),
    }
    return format_html(
        '<svg class="fig-line" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<path class="fig-line__base" d="M0 {}H{}"/><polyline points="{}"/></svg>',
        _WIDTH,
        _HEIGHT,
        label,
        _HEIGHT - 1,
        _WIDTH,
        line,
    )


@register.filter
def figure_cell(cell: str | dict[str, str]) -> str:
    """A stored cell of a table (portal.dashboard.registry.Table)."""
    if isinstance(cell, dict) and "all" in cell:
        return _("%(number)s of %(all)s") % cell
    if isinstance(cell, dict):
        return display.moment(dt.datetime.fromisoformat(cell["at"]))
    return label_text(cell)


@register.filter
def ago(at: dt.datetime | float | None, now: dt.datetime) -> str:
    """How long ago a time, or a Unix time, was."""
    if at is None:
        return _("never")
    return display.ago_text(now.timestamp() - (at.timestamp() if isinstance(at, dt.datetime) else at))


@register.filter
def secs_text(secs: float | None) -> str:
    """A run time, with one decimal below ten seconds."""
    if secs is None:
        return _NOTHING
    return display.localised(f"{secs:.1f} s") if secs < 10 else span(secs)
