"""The most that a machine can do, given the hardware that it reports (accounting rules, rules 2 and 5).

All arithmetic is in whole numbers: times in micro-seconds, credit in micro-credits, jobs in micro-jobs. A
processor of ``f`` FLOPS earns ``t * f / 432e9`` micro-credits in ``t`` micro-seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from accounting.engine.amounts import FLOPS_PER_CREDIT

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
DAY_US = 24 * HOUR_US

# Clients count a GPU at a fifth of its peak (BOINC protocol, estimated credit).
_CPU_DIVISOR = FLOPS_PER_CREDIT
_GPU_DIVISOR = 5 * FLOPS_PER_CREDIT


class Allowance(NamedTuple):
    """What a machine can have done: instance-seconds, credit, and jobs of either outcome; all in micro-units."""

    cpu_time: int
    gpu_time: int
    cpu_ec: int
    gpu_ec: int
    jobs: int


NO_ALLOWANCE = Allowance(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Machine:
    """Hardware as a client describes it: CPU instances, FLOPS of one, and GPUs as (count, peak FLOPS); names of models,
    where known.
    """

    ncpus: int
    p_fpops: int
    gpus: tuple[tuple[int, int], ...] = ()
    cpu_model: str = ""
    gpu_models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most that a machine may claim to be; anything above counts as the ceiling."""

    max_ncpus: int = 1_024
    max_p_fpops: int = 200_000_000_000
    max_gpus: int = 64
    max_gpu_flops: int = 500_000_000_000_000


class Capacity(NamedTuple):
    """What one machine does in a second, and how fast its fastest processors are (FLOPS)."""

    cpu_instances: int
    gpu_instances: int
    cpu_flops: int
    gpu_flops: int
    job_slots: int
    one_cpu_flops: int
    one_gpu_flops: int


_NOTHING = Capacity(0, 0, 0, 0, 0, 0, 0)


def capacity(machine: Machine | None, ceilings: Ceilings) -> Capacity:
    """Return the capacity of a machine, clamped to the ceilings; an unknown machine can do nothing.

    A host with a GPU gets one CPU instance more than it has: CPU jobs and the CPU part of GPU jobs together may
    overcommit by one.
    """
    if machine is None:
        return _NOTHING
    ncpus = min(max(machine.ncpus, 0), ceilings.max_ncpus)
    one_cpu_flops = min(max(machine.p_fpops, 0), ceilings.max_p_fpops)
    gpus = gpu_flops = one_gpu_flops = 0
    for claimed, peak in machine.gpus:
        count = min(max(claimed, 0), ceilings.max_gpus - gpus)
        if count:
            flops = min(max(peak, 0), ceilings.max_gpu_flops)
            gpus += count
            gpu_flops += count * flops
            one_gpu_flops = max(one_gpu_flops, flops)
    cpus = ncpus + 1 if gpus else ncpus
    return Capacity(cpus, gpus, cpus * one_cpu_flops, gpu_flops, ncpus + gpus, one_cpu_flops, one_gpu_flops)


def larger_capacity(old: Machine | None, new: Machine | None, ceilings: Ceilings) -> Capacity:
    """Return the larger of two descriptions, figure by figure: at a change, work may come from either hardware."""
    if new is None:
        return capacity(old, ceilings)
    ours = capacity(new, ceilings)
    if old is None or old == new:
        return ours
    return Capacity(*map(max, capacity(old, ceilings), ours))


def allowance(machine: Capacity, until_us: int, since_us: int = 0) -> Allowance:
    """Return the most that a machine can do between two times.

    Credit is rounded as the difference of two whole numbers, not as a product of the time between: the parts of a long
    time add up to the whole, so a host that reports twice a minute loses no more than one that reports daily.
    """
    elapsed_us = until_us - since_us
    return Allowance(
        machine.cpu_instances * elapsed_us,
        machine.gpu_instances * elapsed_us,
        machine.cpu_flops * until_us // _CPU_DIVISOR - machine.cpu_flops * since_us // _CPU_DIVISOR,
        machine.gpu_flops * until_us // _GPU_DIVISOR - machine.gpu_flops * since_us // _GPU_DIVISOR,
        machine.job_slots * elapsed_us,
    )


def most_cpu_credit(machine: Capacity, run_us: int) -> int:
    """Return the most credit, in micro-credits, that a run time on CPUs can be worth (accounting rules, rule 5).

    The client rounds both totals to 1e-6 and we cut its speed to whole FLOPS, so an honest report may seem a little too
    high: one micro-second, one FLOPS and two micro-credits are allowed for that.
    """
    if not machine.one_cpu_flops:
        return 0
    return (run_us + 1) * (machine.one_cpu_flops + 1) // _CPU_DIVISOR + 2


def most_gpu_credit(machine: Capacity, run_us: int) -> int:
    """Return the most credit that a run time on GPUs can bring, taking each GPU to be as fast as the fastest."""
    if not machine.one_gpu_flops:
        return 0
    return (run_us + 1) * (machine.one_gpu_flops + 1) // _GPU_DIVISOR + 2
