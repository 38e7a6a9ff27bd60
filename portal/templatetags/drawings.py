"""Small drawings in SVG, without scripts: a bar for a fraction, and a row of thin bars for a month."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Final

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from portal.templatetags.display import credit_text
from portal.templatetags.display import day as day_text

register = template.Library()

DATA_COLOURS: Final = 8
"""The number of data colours in static/portal/tokens.css."""

_STEP, _GAP, _HEIGHT = 10, 2, 64


@register.simple_tag
def bar(fraction: float, colour: int | str) -> SafeString:
    """A horizontal bar, ``fraction`` (0 to 1) of its space long; the number is beside it as text."""
    width = f"{max(0.0, min(1.0, fraction)) * 100:.1f}%"
    return format_html(
        '<svg class="bar data-{}" width="100%" height="8" aria-hidden="true">'
        '<rect width="100%" height="8" rx="4" class="bar__rest"/>'
        '<rect width="{}" height="8" rx="4" fill="currentColor"/></svg>',
        colour,
        width,
    )


@register.simple_tag
def part_to_come(amount: float, to_come: float) -> SafeString:
    """A bar for an amount, followed by a hatched one for what is still to come; the numbers are beside it as text."""
    width = f"{100 * amount / (amount + to_come):.1f}%"
    return format_html(
        '<svg class="bar bar--hatched" width="100%" height="10" aria-hidden="true">'
        '<defs><pattern id="to-come" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="2" height="6" fill="currentColor"/></pattern></defs>'
        '<rect width="100%" height="10" rx="4" class="bar__rest"/>'
        '<rect width="100%" height="10" rx="4" fill="url(#to-come)"/>'
        '<rect width="{}" height="10" rx="4" fill="currentColor"/></svg>',
        width,
    )


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20 …, for the end of an axis."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value)


@register.simple_tag
def day_bars(days: Sequence[tuple[dt.date, float]], most: float, label: str) -> SafeString:
    """Zero-based bars for days, where ``most`` fills the height; the last one (not over yet) is paler."""
    bars = []
    for index, (_day, amount) in enumerate(days):
        height = max(1.0, amount / most * _HEIGHT) if amount else 0.0
        classes = "spark__today" if index == len(days) - 1 else "spark__day"
        bars.append((classes, index * _STEP, f"{_HEIGHT - height:.1f}", _STEP - _GAP, f"{height:.1f}"))
    return format_html(
        '<svg class="spark__bars" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        len(days) * _STEP - _GAP,
        _HEIGHT,
        label,
        format_html_join("", '<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>', bars),
    )


@register.simple_tag
def sparkline(days: Sequence[tuple[dt.date, int]]) -> SafeString:
    """Zero-based bars for days with micro-credits; the last one (today, not over yet) is paler."""
    highest = max((amount for _day, amount in days), default=0)
    bars = []
    for index, (day, amount) in enumerate(days):
        # Anything above zero must be visible: at least one pixel.
        height = max(1.0, amount / highest * (_HEIGHT - 2)) if amount else 0.0
        classes = "spark__today" if index == len(days) - 1 else "spark__day"
        words = {"day": day_text(day), "number": credit_text(amount)}
        title = _("%(day)s: %(number)s credits") % words
        bars.append((classes, index * _STEP, f"{_HEIGHT - 1 - height:.1f}", _STEP - _GAP, f"{height:.1f}", title))
    best = max(days, key=lambda entry: entry[1], default=None)
    summary = _("Credit of the last %(days)s days") % {"days": str(len(days))}
    if best is not None and best[1]:
        words = {"days": str(len(days)), "day": day_text(best[0]), "number": credit_text(best[1])}
        summary = _("Credit of the last %(days)s days; most on %(day)s with %(number)s") % words
    return format_html(
        '<svg class="spark__bars" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
        '{}<path class="spark__base" d="M0 {}.5H{}"/></svg>',
        len(days) * _STEP - _GAP,
        _HEIGHT,
        summary,
        format_html_join("", '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>', bars),
        _HEIGHT - 1,
        len(days) * _STEP,
    )
