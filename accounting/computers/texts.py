"""How a computer's client runs, in words, from its last report about itself (HostLedger.contact)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from portal.templatetags.display import nbytes, percent


@dataclass(frozen=True, slots=True)
class ClientFact:
    """A line of the page: label, value, and details in small print."""

    name: str
    text: str
    more: str = ""


_RUN_MODES: Final = {
    "always": "Always runs",
    "auto": "Runs according to preferences",
    "never": "Never runs: it is set to “never”",
}


def client_facts(contact: Mapping[str, Any]) -> list[ClientFact]:
    """The known values; a value that the client did not send, or that is impossible, is left out."""
    times, net = _mapping(contact, "time_stats"), _mapping(contact, "net_stats")
    found = []
    if mode := _RUN_MODES.get(str(contact.get("run_mode"))):
        found.append(ClientFact("Mode", mode))
    if (on := _fraction(times, "on_frac")) is not None:
        found.append(ClientFact("BOINC runs", f"{percent(on)} of the time"))
    if (active := _fraction(times, "active_frac")) is not None:
        gpu = _fraction(times, "gpu_active_frac")
        more = f"GPUs {percent(gpu)}" if gpu is not None and percent(gpu) != percent(active) else ""
        found.append(ClientFact("May compute", f"{percent(active)} of that", more))
    if (connected := _fraction(times, "connected_frac")) is not None:
        found.append(ClientFact("Connected", f"{percent(connected)} of that"))
    if down := _positive(net, "bwdown"):
        up = _positive(net, "bwup")
        more = f"{nbytes(up)} a second up" if up else ""
        found.append(ClientFact("Network", f"{nbytes(down)} a second down", more))
    return found


def _mapping(contact: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = contact.get(name)
    return value if isinstance(value, dict) else {}


def _fraction(numbers: Mapping[str, Any], name: str) -> float | None:
    """A fraction of time; clients write -1 for one that they do not know."""
    value = numbers.get(name)
    return value if isinstance(value, int | float) and 0 <= value <= 1 else None


def _positive(numbers: Mapping[str, Any], name: str) -> float | None:
    value = numbers.get(name)
    return value if isinstance(value, int | float) and value > 0 else None
