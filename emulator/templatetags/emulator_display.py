"""How times, variants and sources of experiments look on the emulator's pages."""

from __future__ import annotations

from django import template

from emulator.pages import row_texts, stored_texts, variant_texts

register = template.Library()

register.filter(row_texts.run_time)
register.filter("variant", variant_texts.shown)
register.filter("origin", stored_texts.origin)
