"""The columns of a computer's record that its clients describe, in requests to the account manager and the project."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any, Final

from portal.languages.messages import Message
from portal.wire.hardware import Hardware

MAX_FAULTS: Final = 20
_OTHERWISE: Final = {"timezone", "ncpus", "p_calculated", "d_free", "containers", "coprocs", "faults"}
_SAME_NAME: Final = tuple(field.name for field in fields(Hardware) if field.name not in _OTHERWISE)
HOST_COLUMNS: Final = (
    *_SAME_NAME,
    "ncpus", "timezone_secs", "benchmarked_at", "coprocs", "docker_version", "wsl", "hardware_faults",
    "host_cpid", "domain_name", "client_version", "platform_name",
    # Of requests to the account manager, and of those to the project
    "hardware_digest", "not_used", "client_brand", "client_opaque",
)  # fmt: skip
"""A statement that writes a description sets all of these; columns missing from the description keep their values."""


def client_columns(host_cpid: str, domain_name: str, client_version: str, platform_name: str) -> dict[str, Any]:
    """The columns for what a client says about itself. Names that a request leaves out keep their values."""
    names = {"host_cpid": host_cpid, "domain_name": domain_name}
    always = {"client_version": client_version[:32], "platform_name": platform_name}
    return always | {column: name for column, name in names.items() if name}


def hardware_columns(hardware: Hardware, faults: Iterable[Message] = ()) -> dict[str, Any]:
    """The columns of hardware, safe for JSON; ``faults``: further faults, which come first."""
    benchmarked_at = hardware.p_calculated
    return {
        **{name: getattr(hardware, name) for name in _SAME_NAME},
        "ncpus": hardware.ncpus or 0,
        "timezone_secs": hardware.timezone,
        "benchmarked_at": dt.datetime.fromtimestamp(benchmarked_at, dt.UTC).isoformat() if benchmarked_at else None,
        "coprocs": [asdict(coproc) for coproc in hardware.coprocs],
        "docker_version": hardware.containers.docker_version,
        "wsl": [asdict(distro) for distro in hardware.containers.distros],
        "hardware_faults": [fault.to_json() for fault in (*faults, *hardware.faults)][:MAX_FAULTS],
    }
