"""The computer of a scenario: its processors, and when it is on, connected and active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from emulator.engine.scenario.checks import (
    CPU,
    MAX_FLOPS,
    MAX_INSTANCES,
    MAX_KINDS,
    MAX_SECS,
    Between,
    Count,
    Label,
    Name,
    ScenarioError,
    check_limits,
)


@dataclass(frozen=True, slots=True)
class Availability:
    """A two-state process: up times are exponential with mean `mean_up_secs`, down times so that the long-run
    part of the time it is up is `fraction`. It starts up with that probability. 1 is always up, 0 never."""

    fraction: Annotated[float, Between(0, 1)] = 1.0
    mean_up_secs: Annotated[float, Between(1, MAX_SECS)] = 3600.0


@dataclass(frozen=True, slots=True)
class Processor:
    """One kind of processor. The first kind of a host is always `CPU`.

    `efficiency` is the part of the peak that counts as work done: BOINC assumes 1 for CPUs and 0.2 for GPUs.
    Credit, recent credit and all figures of merit count `peak_flops * efficiency` per instance.
    """

    kind: Name
    instances: Annotated[int, Between(1, MAX_INSTANCES)]
    peak_flops: Annotated[float, Between(1, MAX_FLOPS)]
    efficiency: Annotated[float, Between(1e-6, 1)] = 1.0

    @property
    def counted_flops(self) -> float:
        """The counted FLOPS of one instance in accounts and figures of merit."""
        return self.peak_flops * self.efficiency


@dataclass(frozen=True, slots=True)
class Host:
    """A computer. `on` rules everything; `connected` only RPCs; `active` all computing; `gpu_active` that of GPUs."""

    processors: Annotated[tuple[Processor, ...], Count(1, MAX_KINDS)]
    on: Availability = Availability()
    connected: Availability = Availability()
    active: Availability = Availability()
    gpu_active: Availability = Availability()
    name: Label = ""


def check_availability(name: str, process: Availability) -> None:
    check_limits(f"{name}.", process)


def check_host(host: Host) -> None:
    check_limits("", host)
    if host.processors[0].kind != CPU:
        raise ScenarioError("processors", f"the first must be {CPU}")
    kinds = [processor.kind for processor in host.processors]
    if len(set(kinds)) < len(kinds):
        raise ScenarioError("processors", "two entries have the same type; use one entry with more instances")
    for processor in host.processors:
        check_limits(f"{processor.kind}.", processor)
    for name in ("on", "connected", "active", "gpu_active"):
        check_availability(name, getattr(host, name))
