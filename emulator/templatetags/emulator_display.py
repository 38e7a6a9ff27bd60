"""How times of a run and projects' colours look on the emulator's pages."""

from __future__ import annotations

from django import template

from emulator import downloads
from emulator.pages import COLOURS

register = template.Library()

register.filter(downloads.run_time)


@register.filter
def colour(number: int) -> int:
    """Which of the data colours the n-th project has."""
    return number % COLOURS
