"""Lengths of time in words, each in a convenient unit."""

from __future__ import annotations

from django.template.defaultfilters import floatformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def duration(secs: float) -> str:
    """Return a length such as "25 s", "14 min", "3.2 h" or "5.4 days"."""
    if abs(secs) < 99.5:
        return _("%(number)s\u00a0s") % {"number": floatformat(secs, 0)}
    if abs(secs) < 99.5 * 60:
        return _("%(number)s\u00a0min") % {"number": floatformat(secs / 60, 0)}
    if abs(secs) < 47.95 * 3600:
        return _("%(number)s\u00a0h") % {"number": floatformat(round(secs / 3600, 1), -1)}
    # Never just one.
    return ngettext("%(number)s\u00a0day", "%(number)s\u00a0days", 2) % {
        "number": floatformat(round(secs / 86400, 1), -1)
    }
