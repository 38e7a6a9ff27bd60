"""A computer's description of itself, written to the host's record only when it has changed."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from accounting.engine.machine import Machine
from accounting.wire.requests import AccountManagerRequest
from portal.computers.host_columns import client_columns, hardware_columns
from portal.computers.identify import HostDescription


@dataclass(frozen=True, slots=True)
class Description:
    """The host's columns to write, as in JSON, and the hardware as the ledger sees it (None: not reported)."""

    columns: dict[str, Any]
    machine: Machine | None


def description_digest(request: AccountManagerRequest) -> bytes:
    """Return a digest that changes when the stored description of the computer has to change."""
    text = "\n".join((request.host_cpid, request.domain_name, request.client_version, request.platform_name))
    return blake2b(request.hardware_digest + text.encode(), digest_size=16).digest()


def appearance_of(request: AccountManagerRequest) -> HostDescription:
    hardware = request.hardware()
    return HostDescription(
        token=request.host_token,
        former_number=request.host_number,
        host_cpid=request.host_cpid,
        domain_name=request.domain_name,
        os_name=hardware.os_name if hardware else "",
        p_vendor=hardware.p_vendor if hardware else "",
        p_model=hardware.p_model if hardware else "",
    )


def describe(request: AccountManagerRequest) -> Description:
    """Return the description to store; fields that are not in the request stay as they are."""
    hardware = request.hardware()
    columns = {
        "hardware_digest": f"\\x{description_digest(request).hex()}",
        **client_columns(request.host_cpid, request.domain_name, request.client_version, request.platform_name),
    }
    if hardware is None:
        return Description(columns, None)
    gpus = tuple((c.count, int(c.peak_flops or 0)) for c in hardware.coprocs)
    names = tuple(coproc.name for coproc in hardware.coprocs)
    machine = Machine(hardware.ncpus or 0, int(hardware.p_fpops or 0), gpus, hardware.p_model, names)
    return Description(columns | hardware_columns(hardware), machine)
