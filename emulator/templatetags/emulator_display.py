"""The format of times and variants on the emulator's pages."""

from __future__ import annotations

from django import template
from django.template.defaultfilters import floatformat
from django.utils.translation import ngettext

from emulator.pages.texts import row_texts, variant_texts

register = template.Library()


@register.filter
def days(number: float) -> str:
    """Return the length of a run: "30 days", "0.5 days"."""
    nearest = int(number) if number == int(number) else 2  # fractions of days take the plural
    return ngettext("%(number)s day", "%(number)s days", nearest) % {"number": floatformat(number, -2)}


@register.filter
def signed(number: float) -> str:
    """Return a difference with its sign and four decimals: "+0.0012"; 0 has none."""
    digits = floatformat(abs(number), 4)
    if not any(digit in digits for digit in "123456789"):
        return digits
    return f"−{digits}" if number < 0 else f"+{digits}"


register.filter(row_texts.run_time)
register.filter("variant", variant_texts.label_of)
