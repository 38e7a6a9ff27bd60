"""A computer's description of itself, which is written to the host's record only when it has changed."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, Final

from accounting.engine.machine import Machine
from accounting.wire.requests import AccountManagerRequest
from portal.computers.identify import HostDescription
from portal.wire.hardware import Hardware

# Columns with the same name as in the request.
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
_OF_CONTAINERS: Final = ("docker_version", "wsl")


@dataclass(frozen=True, slots=True)
class Description:
    """The host's columns to write, as in JSON, and the hardware as the ledger sees it (None: not reported)."""

    columns: dict[str, Any]
    machine: Machine | None


# Every column that a description may write.
DESCRIBED: Final = (
    *_SAME_NAME,
    *_OF_CONTAINERS,
    "hardware_digest",
    "host_cpid",
    "domain_name",
    "client_version",
    "platform_name",
    "ncpus",
    "timezone_secs",
    "benchmarked_at",
    "coprocs",
    "hardware_faults",
)


def description_digest(request: AccountManagerRequest) -> bytes:
    """A digest that changes when the stored description of the computer has to change."""
    said = "\n".join((request.host_cpid, request.domain_name, request.client_version, request.platform_name))
    return blake2b(request.hardware_digest + said.encode(), digest_size=16).digest()


def appearance_of(request: AccountManagerRequest) -> HostDescription:
    hardware = request.hardware()
    return HostDescription(
        token=request.host_token,
        host_cpid=request.host_cpid,
        domain_name=request.domain_name,
        os_name=hardware.os_name if hardware else "",
        p_vendor=hardware.p_vendor if hardware else "",
        p_model=hardware.p_model if hardware else "",
    )


def describe(request: AccountManagerRequest) -> Description:
    """The description to store; fields that are not in the request stay as they are."""
    hardware = request.hardware()
    said = {
        "hardware_digest": f"\\x{description_digest(request).hex()}",
        "client_version": request.client_version,
        "platform_name": request.platform_name,
    }
    of_client = {"host_cpid": request.host_cpid, "domain_name": request.domain_name}
    columns = said | {column: name for column, name in of_client.items() if name}
    if hardware is None:
        return Description(columns, None)
    gpus = tuple((c.count, int(c.peak_flops or 0)) for c in hardware.coprocs)
    names = tuple(each.name for each in hardware.coprocs)
    machine = Machine(hardware.ncpus or 0, int(hardware.p_fpops or 0), gpus, hardware.p_model, names)
    return Description(columns | _hardware_columns(hardware), machine)


def _hardware_columns(hardware: Hardware) -> dict[str, Any]:
    benchmarked_at = hardware.p_calculated
    return {
        **{name: getattr(hardware, name) for name in _SAME_NAME},
        "docker_version": hardware.containers.docker_version,
        "wsl": [asdict(distro) for distro in hardware.containers.distros],
        "ncpus": hardware.ncpus or 0,
        "timezone_secs": hardware.timezone,
        "benchmarked_at": dt.datetime.fromtimestamp(benchmarked_at, dt.UTC).isoformat() if benchmarked_at else None,
        "coprocs": [asdict(coproc) for coproc in hardware.coprocs],
        "hardware_faults": [fault[:200] for fault in hardware.faults[:20]],
    }
