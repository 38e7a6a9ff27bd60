"""Sentences of the dashboard about times and periodic tasks."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def task_trouble(
    schedule_secs: float, waiting_secs: float, has_run: bool, failed_last: bool, fault: str, name: str
) -> str:
    """A periodic task's problem. ``waiting_secs``: since its last success or, if none, since it was first known."""
    words = {"task": name, "every": span(schedule_secs), "time": span(waiting_secs), "fault": fault}
    if failed_last and fault:
        return _("The task “%(task)s” failed when it last ran: %(fault)s.") % words
    if failed_last:
        return _("The task “%(task)s” failed when it last ran; no reason is known.") % words
    if waiting_secs > 3 * schedule_secs + 900:
        if has_run:
            return _("The task “%(task)s” has not succeeded for %(time)s; it is due every %(every)s.") % words
        return _("The task “%(task)s” has never succeeded; it is due every %(every)s.") % words
    return ""


def span(secs: float) -> str:
    """A time span for a sentence: "40 seconds", "3 hours"."""
    if secs >= 1.5 * 86_400:
        return ngettext("%(number)s day", "%(number)s days", round(secs / 86_400)) % {"number": f"{secs / 86_400:.0f}"}
    if secs >= 1.5 * 3600:
        return ngettext("%(number)s hour", "%(number)s hours", round(secs / 3600)) % {"number": f"{secs / 3600:.0f}"}
    if secs >= 90:
        return ngettext("%(number)s minute", "%(number)s minutes", round(secs / 60)) % {"number": f"{secs / 60:.0f}"}
    if 55 <= secs <= 65:
        return _("a minute")
    return ngettext("%(number)s second", "%(number)s seconds", round(secs)) % {"number": f"{secs:.0f}"}
