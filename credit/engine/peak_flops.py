"""What a host may claim to be at most, and the peak FLOPS of the devices that a job is given.

"There's a maximum possible CPU FLOPS and a maximum # of CPUs per host" (accounting document, "The BOINC credit
system"). The scheduler reckons a job's peak FLOPS when it sends it, from hardware that was cut to these ceilings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Final

FAILED_BENCHMARK_FLOPS: Final = 1e9
"""What a client reports whose benchmark failed or was skipped."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most that a host may claim: CPU instances, FLOPS of one, GPUs, FLOPS of one."""

    max_ncpus: float = 1024
    max_cpu_flops: float = 200e9
    max_gpus: float = 64
    max_gpu_flops: float = 500e12


@dataclass(frozen=True, slots=True)
class GpuUse:
    """How many GPUs of a type a job is given, maybe a fraction, and the peak of one in either precision (FLOPS)."""

    count: float
    single_flops: float
    double_flops: float = 0.0


def peak_flops(ncpus: float, p_fpops: float, gpus: Iterable[GpuUse], ceilings: Ceilings) -> float:
    """The peak FLOPS of a job's devices: CPUs × benchmark + GPUs × peak, single or double precision, the higher.

    A speed or count that is negative or not a number counts as none; a benchmark that is none, as one that failed. So
    the sum is positive if any CPU is used.
    """
    speed = cut(p_fpops, ceilings.max_cpu_flops) or FAILED_BENCHMARK_FLOPS
    total = cut(ncpus, ceilings.max_ncpus) * speed
    left = ceilings.max_gpus
    for gpu in gpus:
        count = cut(gpu.count, left)
        left -= count
        single, double = cut(gpu.single_flops, ceilings.max_gpu_flops), cut(gpu.double_flops, ceilings.max_gpu_flops)
        total += count * max(single, double)
    return total


def cut(value: float, most: float) -> float:
    """``value``, at most ``most``; 0 for one that is negative or not a number. Infinity is cut like any other."""
    return min(value, most) if 0 <= value <= inf else 0.0
