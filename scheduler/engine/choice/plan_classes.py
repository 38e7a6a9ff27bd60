"""The requirements of a plan class, and which of them a computer does not meet. Pure.

Units are those of BOINC's plan_class_spec.xml; 0 means no condition.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from scheduler.engine.choice.containers import DOCKER
from scheduler.engine.facts import Computer, PlanClassRules
from scheduler.engine.reasons import Reason
from scheduler.engine.request import Gpu

LEAST_CLIENT_FOR_VMS: Final = 70_000
MAX_PATTERN_CHARS: Final = 200
MAX_SEARCHED_CHARS: Final = 128
_ACCELERATION: Final = frozenset({"vmx", "svm"})
_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,2})\.(\d{1,2})(?!\d)")
MAX_CHOICES: Final = 3
"""The number of repeated or optional parts in a pattern, and of groups."""
_ESCAPED: Final = re.compile(r"\\[^0-9]")
_REPEATED: Final = re.compile(r"[*+?]")
_GROUP: Final = re.compile(r"\(")
_NESTED: Final = re.compile(r"\)[*+?{]|\{|\(\?|\[\[:|\\[0-9]")


def missing(plan_class: PlanClassRules, platform: str, computer: Computer) -> Reason | None:
    """Return what a version of this class for this platform lacks on the computer, GPUs excepted; None if nothing."""
    if lacking := plan_class.needs_containers - computer.containers:
        return Reason.DOCKER if DOCKER in lacking else Reason.WSL
    if not _within(computer.client, plan_class.min_client, plan_class.max_client):
        return Reason.CLIENT
    if plan_class.needs_virtualbox and (lacks := _missing_for_vms(plan_class, platform, computer)):
        return lacks
    if _lets_too_few(plan_class, computer):
        return Reason.FEW_CPUS
    fits = (
        computer.ncpus >= plan_class.min_ncpus
        and plan_class.cpu_features <= computer.features
        and all(matches(pattern, text) for pattern, text in zip(plan_class.patterns, computer.texts, strict=True))
        and _has_system(plan_class, computer)
    )
    return None if fits else Reason.PLAN_CLASS


def _missing_for_vms(plan_class: PlanClassRules, platform: str, computer: Computer) -> Reason | None:
    if platform != computer.platform:
        # A 32-bit program does not find VirtualBox on 64-bit Windows.
        return Reason.PLAN_CLASS
    if computer.client < LEAST_CLIENT_FOR_VMS:
        return Reason.CLIENT
    if not computer.virtualbox:
        return Reason.VIRTUALBOX
    if "unusable" in computer.virtualbox:
        return Reason.VIRTUALBOX_UNUSABLE
    version = virtualbox_number(computer.virtualbox)
    is_right = _within(version, plan_class.min_virtualbox, plan_class.max_virtualbox)
    if not version or not is_right or version in plan_class.excluded_virtualbox:
        return Reason.VIRTUALBOX_VERSION
    if plan_class.needs_acceleration and not has_acceleration(computer):
        return Reason.ACCELERATION
    return None


def _has_system(plan_class: PlanClassRules, computer: Computer) -> bool:
    """Whether its system and C library have the right versions. If versions are required, unknown ones are wrong."""
    is_asked = plan_class.min_os or plan_class.max_os
    has_version = not is_asked or bool(computer.os_number)
    is_right = has_version and _within(computer.os_number, plan_class.min_os, plan_class.max_os)
    return is_right and computer.libc_number >= plan_class.min_libc


def _lets_too_few(plan_class: PlanClassRules, computer: Computer) -> bool:
    """Whether the owner's preferences for the project leave fewer processors than a job needs."""
    nthreads = plan_class.min_ncpus if plan_class.max_ncpus > 1 else plan_class.avg_ncpus
    is_few = computer.is_limited and computer.ncpus < max(plan_class.min_ncpus, nthreads)
    return is_few or nthreads > max(1, computer.max_threads or nthreads)


def ncpus_of(plan_class: PlanClassRules, computer: Computer) -> float:
    """Return the number of processors that a job of this class uses: one for a virtual machine without acceleration."""
    if plan_class.max_ncpus <= 1:
        return plan_class.avg_ncpus
    if plan_class.needs_virtualbox and not has_acceleration(computer):
        return 1.0
    return float(min(computer.ncpus, plan_class.max_ncpus, computer.max_threads or computer.ncpus))


def gpu_ncpus(cpu_share: float, cpu_flops: float, gpu_flops: float) -> float:
    """Return the processors that a GPU program keeps busy if it computes this share of its FLOPs on the CPU.

    The parts are computed in turn, so this is the share of the time that the CPU's part takes.
    """
    if cpu_flops <= 0 or gpu_flops <= 0:
        return cpu_share
    cpu_secs, gpu_secs = cpu_share / cpu_flops, (1 - cpu_share) / gpu_flops
    return cpu_secs / (cpu_secs + gpu_secs)


def fits_gpu(plan_class: PlanClassRules, gpu: Gpu) -> bool:
    """Whether its versions run on these GPUs. Current AMD drivers have no number, so a missing one is accepted."""
    has_number = gpu.driver or gpu.type == "NVIDIA"
    return (
        (not has_number or _within(gpu.driver, plan_class.min_driver, plan_class.max_driver))
        and _within(gpu.capability, plan_class.min_capability, plan_class.max_capability)
        and _within(gpu.cuda, plan_class.min_cuda, plan_class.max_cuda)
        and _within(gpu.opencl, plan_class.min_opencl, plan_class.max_opencl)
        and _within(gpu.peak_flops, plan_class.min_gpu_flops, plan_class.max_gpu_flops)
        and (gpu.has_opencl or not plan_class.needs_opencl)
        and (gpu.has_doubles or not plan_class.needs_doubles)
        and matches(plan_class.gpu_pattern, gpu.model)
    )


def _within(number: float, least: float, most: float) -> bool:
    return number >= least and (not most or number <= most)


def has_acceleration(computer: Computer) -> bool:
    """Whether its processor accelerates virtual machines, and the firmware allows it."""
    return computer.allows_vms and bool(_ACCELERATION & computer.features)


def virtualbox_number(text: str) -> int:
    """Return a version of VirtualBox such as 7.0.12 as 70012; 0 if it is not a version."""
    match = _VERSION.match(text)
    return int(match[1]) * 10_000 + int(match[2]) * 100 + int(match[3]) if match else 0


def is_pattern(text: str) -> bool:
    """Whether a regular expression is safe to use: slow on no text.

    So few parts may be repeated, and no groups; forms that POSIX and Python read differently are excluded, too.
    """
    # A backslash may itself be escaped; then what follows is special again.
    signs = _ESCAPED.sub("_", text)
    nchoices = max(len(_REPEATED.findall(signs)), len(_GROUP.findall(signs)))
    if len(text) > MAX_PATTERN_CHARS or nchoices > MAX_CHOICES or _NESTED.search(signs):
        return False
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


@lru_cache(maxsize=4096)
def matches(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in what a client sent; an empty one does.

    Cached, because similar computers send the same texts.
    """
    return not pattern or re.search(pattern, text[:MAX_SEARCHED_CHARS]) is not None
