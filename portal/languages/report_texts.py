"""What of a client's report was wrong, in the reader's language. Rows have it in English, as the parsers say it."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop

from portal.languages.stored import translated

_FAULTS: Final = (
    # Of the computer (portal/wire/hardware.py, scheduler/rpc/host_record.py)
    gettext_noop("%(field)s is %(claimed)s and counts as %(most)s, the most that is believed"),
    gettext_noop("%(field)s is %(claimed)s, so its speed is not known; tasks get average credit"),
    gettext_noop("%(field)s is not an integer from %(low)s to %(high)s"),
    gettext_noop("%(field)s is not a decimal number from %(low)s to %(high)s"),
    gettext_noop("%(field)s is longer than %(number)s characters"),
    gettext_noop("host_info was read in part, %(field)s: more than %(number)s elements are never closed"),
    gettext_noop("host_info was read in part, %(field)s: longer than %(number)s bytes"),
    gettext_noop("host_info was read in part, %(reason)s"),
    gettext_noop("coprocs has more than %(number)s entries"),
    # Of a task (scheduler/rpc/reports.py)
    gettext_noop("%(name)s was not uploaded"),
    gettext_noop("%(name)s could not be uploaded: %(reason)s"),
    gettext_noop("%(name)s has another MD5 on the computer than here"),
    gettext_noop("final_elapsed_time is %(secs)s s, but the job was out for %(most)s s only"),
    gettext_noop("The computer does not have this job any more"),
)


def shown(fault: str) -> str:
    """A stored fault of a report in the active language; a text that is none as it is."""
    return translated(fault, _FAULTS)
