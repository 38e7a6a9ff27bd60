"""How a computer's client runs, in words, from its last report about itself (HostLedger.contact)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_noop as _

from accounting.computers.several import Action
from portal.templatetags.display import nbytes, percent


@dataclass(frozen=True, slots=True)
class ClientFact:
    """A line of the page: label, value, and details in small print."""

    name: str
    text: str
    more: str = ""


_RUN_MODES: Final = {
    "always": _("Always runs"),
    "auto": _("Runs according to preferences"),
    "never": _("Never runs (set to “never”)"),
}


ACTION_NAMES: Final = {
    gettext_lazy("Projects"): {
        Action.SUSPEND: gettext_lazy("Suspend"),
        Action.RESUME: gettext_lazy("Resume"),
        Action.NO_NEW_WORK: gettext_lazy("No new tasks"),
        Action.NEW_WORK: gettext_lazy("Allow new tasks"),
        Action.UPDATE: gettext_lazy("Contact the projects now"),
        Action.EXCLUDE: gettext_lazy("Not on these computers"),
        Action.INCLUDE: gettext_lazy("On these computers again"),
    },
    gettext_lazy("Place (selects the preferences)"): {
        Action.PLACE_NONE: gettext_lazy("default"),
        Action.PLACE_HOME: gettext_lazy("home"),
        Action.PLACE_WORK: gettext_lazy("work"),
        Action.PLACE_SCHOOL: gettext_lazy("school"),
    },
    gettext_lazy("Group"): {
        Action.JOIN: gettext_lazy("Add to the group"),
        Action.LEAVE: gettext_lazy("Take out of the group"),
    },
    gettext_lazy("Computers"): {
        Action.RETIRE: gettext_lazy("Retire"),
        Action.RESTORE: gettext_lazy("Restore retired ones"),
    },
}
"""The possible changes of several computers, grouped by what they change."""


def client_facts(contact: Mapping[str, Any]) -> list[ClientFact]:
    """Return the known values; one that the client did not send, or that is impossible, is left out."""
    times, net = _mapping(contact, "time_stats"), _mapping(contact, "net_stats")
    facts = []
    if mode := _RUN_MODES.get(str(contact.get("run_mode"))):
        facts.append(ClientFact(gettext("Mode"), gettext(mode)))
    if (on := _fraction(times, "on_frac")) is not None:
        facts.append(ClientFact(gettext("BOINC runs"), gettext("%(part)s of the time") % {"part": percent(on)}))
    if (active := _fraction(times, "active_frac")) is not None:
        gpu = _fraction(times, "gpu_active_frac")
        more = (
            gettext("GPUs %(part)s") % {"part": percent(gpu)}
            if gpu is not None and percent(gpu) != percent(active)
            else ""
        )
        facts.append(
            ClientFact(gettext("May run tasks"), gettext("%(part)s of that") % {"part": percent(active)}, more)
        )
    if (connected := _fraction(times, "connected_frac")) is not None:
        facts.append(ClientFact(gettext("Connected"), gettext("%(part)s of that") % {"part": percent(connected)}))
    if down := _positive(net, "bwdown"):
        up = _positive(net, "bwup")
        more = gettext("%(amount)s per second up") % {"amount": nbytes(up)} if up else ""
        facts.append(
            ClientFact(gettext("Network"), gettext("%(amount)s per second down") % {"amount": nbytes(down)}, more)
        )
    return facts


def _mapping(contact: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = contact.get(name)
    return value if isinstance(value, dict) else {}


def _fraction(numbers: Mapping[str, Any], name: str) -> float | None:
    """A fraction of time; clients write -1 for an unknown one."""
    value = numbers.get(name)
    return value if isinstance(value, int | float) and 0 <= value <= 1 else None


def _positive(numbers: Mapping[str, Any], name: str) -> float | None:
    value = numbers.get(name)
    return value if isinstance(value, int | float) and value > 0 else None
