"""Which program files of a job go to a computer: those of the variant for its version and processor. Pure.

Source: BOINC's sched/buda. A job of a container image includes the image's files, different ones for each kind of
computer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

INTEL: Final = "intel"
ARM: Final = "arm"
ANY: Final = "any"
"""The kind of a variant for all computers without a closer one."""
CPU_KINDS: Final = (INTEL, ARM)

File = Mapping[str, Any]


def cpu_kind(platform: str) -> str:
    """Return the kind of CPU that a platform's name says; empty for kinds that BOINC has no variants for."""
    if "x86_64" in platform:
        return INTEL
    return ARM if "arm" in platform or "aarch64" in platform else ""


def files_for(inputs: Sequence[File], plan_class: str, platform: str, main_platform: str) -> Sequence[File] | None:
    """Return the inputs for a version; None if the job has variants, but none for such a computer.

    Files with a plan class or kind of CPU belong to that variant; the closest one is taken. Containers run on the main
    platform, so a version for another one would build the variant of the wrong processor.
    """
    if not any("plan_class" in file or "cpu" in file for file in inputs):
        return inputs  # as for nearly all jobs
    variants = {_variant(file) for file in inputs} - {None}
    kind = cpu_kind(main_platform)
    # The plan class counts more than the CPU: it says what the job may use.
    by_preference = [(plan_class, kind), (plan_class, ANY), ("", kind), ("", ANY)]
    chosen = next((variant for variant in by_preference if variant in variants), None)
    if chosen is None or platform != main_platform:
        return None
    return [file for file in inputs if _variant(file) in (None, chosen)]


def _variant(file: File) -> tuple[str, str] | None:
    """Return the variant of the file: plan class (empty: any) and kind of CPU; None if it belongs to all jobs."""
    plan_class, cpu = file.get("plan_class", ""), file.get("cpu", "")
    return (plan_class, cpu or ANY) if plan_class or cpu else None
