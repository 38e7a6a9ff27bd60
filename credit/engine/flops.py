"""Peak FLOPS of a job's devices, and the expected speed of a version on a host.

Credit document, "App plan functions" and "Statistics maintained by the server". "There's a maximum possible CPU FLOPS
and a maximum # of CPUs per host" (accounting document, "The BOINC credit system"): the scheduler computes a job's peak
FLOPS when it sends the job, from hardware that was cut to these ceilings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Final

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.rules import Rules

FAILED_BENCHMARK_FLOPS: Final = 1e9
"""The value that a client reports if its benchmark failed or was skipped."""
UNKNOWN_GPU_FLOPS: Final = 1e11
"""Used to estimate run times if a client reports no speed for a GPU, or an impossible one."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most that a host may claim: CPU instances, FLOPS of one, GPUs, FLOPS of one."""

    max_ncpus: float = 1024
    max_cpu_flops: float = 200e9
    max_gpus: float = 64
    max_gpu_flops: float = 500e12


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The number of GPUs of a type that a job is given, possibly fractional, and the peak of one in either precision
    (FLOPS).
    """

    count: float
    single_flops: float
    double_flops: float = 0.0

    @property
    def flops(self) -> float:
        """Return the higher of the two; one that is negative or not a number counts as none."""
        return max(cut(self.single_flops, inf), cut(self.double_flops, inf))


def peak_flops(ncpus: float, p_fpops: float, gpus: Iterable[GpuUse], ceilings: Ceilings) -> float:
    """Return the peak FLOPS of a job's devices: CPUs × benchmark + GPUs × peak (single or double precision, the
    higher).

    A speed or count that is negative or not a number counts as none. Without a benchmark, that of a failed one is used;
    without a GPU speed, or if it is above the ceiling, `UNKNOWN_GPU_FLOPS` (``knows_speed``). So the sum is positive if
    any device is used.
    """
    total = cut(ncpus, ceilings.max_ncpus) * believed_benchmark(p_fpops, ceilings)
    left = ceilings.max_gpus
    for gpu in gpus:
        count = cut(gpu.count, left)
        left -= count
        total += count * (gpu.flops if knows_speed(gpu, ceilings) else UNKNOWN_GPU_FLOPS)
    return total


def knows_speed(gpu: GpuUse, ceilings: Ceilings) -> bool:
    """Whether the client reports a speed that a GPU can have; it is 0 if the driver reports no clock rate."""
    return 0 < gpu.flops <= ceilings.max_gpu_flops


def believed_benchmark(p_fpops: float, ceilings: Ceilings) -> float:
    """Return a host's benchmark, cut to the ceiling; if it is not a valid speed, that of a failed benchmark."""
    return cut(p_fpops, ceilings.max_cpu_flops) or FAILED_BENCHMARK_FLOPS


def cut(value: float, most: float) -> float:
    """Return ``value``, at most ``most``; 0 if it is negative or not a number. Infinity is cut like any other value."""
    return min(value, most) if 0 <= value <= inf else 0.0


def projected_flops(
    et: AverageWithVariance | None, version_pfc: Average | None, peak_flops: float, is_gpu: bool, rules: Rules
) -> float:
    """Return the FLOPS to divide ``fpops_est`` by to estimate a run time: the host's own, the version's, or a guess.

    ``et``: the host's average of elapsed seconds / fpops_est; ``version_pfc``: the version's of PFC / fpops_est;
    ``peak_flops`` of the devices that the job will be given. Never above the peak.
    """
    measured = measured_flops(et, version_pfc, peak_flops, rules)
    return peak_flops * (rules.gpu_efficiency if is_gpu else rules.cpu_efficiency) if measured is None else measured


def measured_flops(
    et: AverageWithVariance | None, version_pfc: Average | None, peak_flops: float, rules: Rules
) -> float | None:
    """Return the measured speed: from the host's own run times, else the version's; None if neither was measured."""
    if et is not None and et.n >= rules.min_host_samples and et.avg:
        return min(1 / et.avg, peak_flops)
    if version_pfc is not None and version_pfc.n >= rules.min_version_samples and version_pfc.avg:
        return min(peak_flops / version_pfc.avg, peak_flops)
    return None
