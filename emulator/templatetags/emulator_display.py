"""How times of a run look on the emulator's pages."""

from __future__ import annotations

from django import template

from emulator.pages import downloads

register = template.Library()

register.filter(downloads.run_time)
