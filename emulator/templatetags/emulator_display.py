"""How times of a run and projects' colours look on the emulator's pages."""

from __future__ import annotations

from django import template

register = template.Library()

COLOURS = 8


@register.filter
def run_time(secs: float) -> str:
    """Seconds from the start of a run as "day 3, 04:05:06"."""
    whole = int(secs)
    return f"day {whole // 86400}, {whole // 3600 % 24:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


@register.filter
def colour(number: int) -> int:
    """Which of the data colours the n-th project has."""
    return number % COLOURS
