"""The computer of a scenario: its processors, and when it is on, connected and active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from emulator.engine.scenario.checks import (
    CPU,
    MAX_FLOPS,
    MAX_INSTANCES,
    MAX_KINDS,
    MAX_RAM_BYTES,
    MAX_SECS,
    MAX_TRACE_INTERVALS,
    Between,
    Count,
    Label,
    Name,
    ScenarioError,
    Secs,
    check_count,
    check_limits,
    check_number,
)
from emulator.engine.scenario.limits import Use, check_use


@dataclass(frozen=True, slots=True)
class Availability:
    """When something is up: random, or according to a trace.

    Random: up times are exponential with mean `mean_up_secs`, down times so that the long-run fraction of up time is
    `fraction`. It starts up with that probability. 1 is always up, 0 never.

    With a trace, nothing is random. `trace` has the intervals in which it is up, each as (from, until), in order and
    with gaps between them, within `trace_secs`; after that time the trace begins again. `fraction` is then only what
    the client itself believes when it plans.
    """

    fraction: Annotated[float, Between(0, 1)] = 1.0
    mean_up_secs: Annotated[float, Between(1, MAX_SECS)] = 3600.0
    trace: Annotated[tuple[tuple[Secs, Secs], ...], Count(0, MAX_TRACE_INTERVALS)] = ()
    trace_secs: Secs = 0.0  # 0: no trace

    @classmethod
    def of_trace(cls, trace: tuple[tuple[float, float], ...], trace_secs: float) -> Availability:
        """Makes a trace whose client knows the fraction of the time in which it is up. Raises ScenarioError."""
        check_trace("trace", trace, trace_secs)
        up_secs = sum([until - since for since, until in trace])
        return cls(up_secs / trace_secs, trace=trace, trace_secs=trace_secs)


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
    """A computer. `on` rules everything; `connected` only RPCs; `active` all computing; `gpu_active` that of GPUs.

    `in_use`, `on_batteries` and the exclusive applications are the owner's use of it: preferences decide which of them
    stop computing. An exclusive application always does. `in_use` is use as the client sees it: it lasts until there
    was no input for a while. `ram_bytes` 0: unknown, and unlimited.
    """

    processors: Annotated[tuple[Processor, ...], Count(1, MAX_KINDS)]
    on: Availability = Availability()
    connected: Availability = Availability()
    active: Availability = Availability()
    gpu_active: Availability = Availability()
    name: Label = ""
    ram_bytes: Annotated[float, Between(0, MAX_RAM_BYTES)] = 0.0
    in_use: Use = Use()
    on_batteries: Use = Use()
    exclusive_app: Use = Use()
    exclusive_gpu_app: Use = Use()


def check_availability(name: str, process: Availability) -> None:
    check_limits(f"{name}.", process)
    if process.trace or process.trace_secs:
        check_trace(f"{name}.trace", process.trace, process.trace_secs)


def check_trace(name: str, trace: tuple[tuple[float, float], ...], trace_secs: float) -> None:
    """Raises ScenarioError unless the intervals are in order, disjoint, and not too many for the time they cover."""
    check_number(f"{name}_secs", trace_secs, 1, MAX_SECS)
    check_count(name, trace, 0, min(MAX_TRACE_INTERVALS, int(trace_secs)))
    before = -1.0
    for since, until in trace:
        check_number(name, since, 0, trace_secs)
        check_number(name, until, 0, trace_secs)
        if not before < since < until:
            raise ScenarioError(name, "trace_interval", since_secs=since, until_secs=until)
        before = until


def check_host(host: Host) -> None:
    check_limits("", host)
    if host.processors[0].kind != CPU:
        raise ScenarioError("processors", "first_processor", kind=CPU)
    kinds = [processor.kind for processor in host.processors]
    if len(set(kinds)) < len(kinds):
        raise ScenarioError("processors", "processor_twice")
    for processor in host.processors:
        check_limits(f"{processor.kind}.", processor)
    for name in ("on", "connected", "active", "gpu_active"):
        check_availability(name, getattr(host, name))
    for name in ("in_use", "on_batteries", "exclusive_app", "exclusive_gpu_app"):
        check_use(name, getattr(host, name))
