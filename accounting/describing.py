"""What a computer says of itself: kept in the host's record, and written only when it changed."""

from __future__ import annotations

import datetime as dt
from hashlib import blake2b
from typing import Final

from accounting.engine.ledger import Machine
from accounting.protocol import AccountManagerRequest, Hardware
from portal.models import Host
from portal.recognition import Appearance

# Columns that are called as in the request.
_SAME_NAME: Final = (
    "p_vendor",
    "p_model",
    "p_features",
    "p_fpops",
    "p_iops",
    "p_membw",
    "m_nbytes",
    "m_cache",
    "m_swap",
    "d_total",
    "os_name",
    "os_version",
    "product_name",
    "virtualbox_version",
)


def description_digest(request: AccountManagerRequest) -> bytes:
    """Changes if the stored description of the computer has to."""
    said = "\n".join((request.host_cpid, request.domain_name, request.client_version, request.platform_name))
    return blake2b(request.hardware_digest + said.encode(), digest_size=16).digest()


def appearance_of(request: AccountManagerRequest) -> Appearance:
    hardware = request.hardware()
    return Appearance(
        token=request.host_token,
        host_cpid=request.host_cpid,
        domain_name=request.domain_name,
        os_name=hardware.os_name if hardware else "",
        p_vendor=hardware.p_vendor if hardware else "",
        p_model=hardware.p_model if hardware else "",
    )


def describe(host: Host, request: AccountManagerRequest, now: dt.datetime) -> Machine | None:
    """Store what the computer says of itself, if it says anything new; return its hardware for the ledger."""
    digest = description_digest(request)
    hardware = request.hardware()
    if bytes(host.hardware_digest) != digest:
        host.hardware_digest = digest
        host.host_cpid = request.host_cpid or host.host_cpid
        host.domain_name = request.domain_name or host.domain_name
        host.client_version = request.client_version
        host.platform_name = request.platform_name
        fields = ["hardware_digest", "host_cpid", "domain_name", "client_version", "platform_name"]
        if hardware is not None:
            fields += _take_hardware(host, hardware)
        host.save(update_fields=fields)
    if hardware is None:
        return None
    gpus = tuple((c.count, int(c.peak_flops or 0)) for c in hardware.coprocs)
    return Machine(hardware.ncpus or 0, int(hardware.p_fpops or 0), gpus)


def _take_hardware(host: Host, hardware: Hardware) -> list[str]:
    """Copy the hardware to the host's columns; return their names."""
    for name in _SAME_NAME:
        setattr(host, name, getattr(hardware, name))
    host.ncpus = hardware.ncpus or 0
    host.timezone_secs = hardware.timezone
    host.benchmarked_at = dt.datetime.fromtimestamp(hardware.p_calculated, dt.UTC) if hardware.p_calculated else None
    host.coprocs = [
        {
            "type": c.type,
            "name": c.name,
            "count": c.count,
            "peak_flops": c.peak_flops,
            "ram_bytes": c.ram_bytes,
            "driver_version": c.driver_version,
            "opencl_version": c.opencl_version,
        }
        for c in hardware.coprocs
    ]
    host.hardware_faults = [fault[:200] for fault in hardware.faults[:20]]
    return [*_SAME_NAME, "ncpus", "timezone_secs", "benchmarked_at", "coprocs", "hardware_faults"]
