"""Plan classes of a BOINC project: of plan_class_spec.xml, and those that BOINC's server has without one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from credit.engine.facts import ProcessorType
from extras.moving_in.engine import blobs

MB: Final = 1024 * 1024
_GPUS: Final = {
    "nvidia": ProcessorType.NVIDIA,
    "amd": ProcessorType.ATI,
    "ati": ProcessorType.ATI,
    "intel_gpu": ProcessorType.INTEL,
    "intel": ProcessorType.INTEL,
    "apple_gpu": ProcessorType.APPLE,
    "apple": ProcessorType.APPLE,
}
_TAKEN: Final = frozenset(
    {
        *("name", "min_ncpus", "max_threads", "cpu_feature", "gpu_type", "min_gpu_ram_mb", "min_driver_version"),
        *("min_nvidia_compcap", "opencl", "docker", "wsl", "nthreads_cmdline", "avg_ncpus", "ngpus"),
        "projected_flops_scale",
    }
)
_HARMLESS: Final = frozenset(
    {
        *("cuda", "cal", "cpu_frac", "gpu_ram_used_mb", "gpu_peak_flops_scale", "gpu_utilization_tag", "is64bit"),
        *("infeasible_random", "mem_usage_base_mb", "mem_usage_per_cpu_mb", "min_core_client_version"),
        *("project_prefs_default_true", "disabled"),
    }
)
"""They choose how much a version uses, or what BOINC's clients of today all have: without them no job fails."""


@dataclass(frozen=True, slots=True)
class PlanClassFacts:
    """The fields of `scheduler.models.PlanClass`. ``lost``: conditions that have no place here; with any, a version
    would be sent to computers that cannot run it.
    """

    name: str
    processor_type: ProcessorType = ProcessorType.CPU
    min_ncpus: int = 0
    max_ncpus: int = 1
    cpu_features: str = ""
    min_gpu_ram_bytes: int = 0
    min_driver_version: int = 0
    min_compute_capability: int = 0
    needs_opencl: bool = False
    needs_docker: bool = False
    needs_wsl: bool = False
    nthreads_cmdline: bool = False
    avg_ncpus: float = 1.0
    gpu_usage: float = 0.0
    projected_flops_scale: float = 1.0
    lost: list[str] = field(default_factory=list)


def read(text: str) -> dict[str, PlanClassFacts]:
    """Of plan_class_spec.xml, by name; of several of one name the first counts, as there."""
    found: dict[str, PlanClassFacts] = {}
    for root in blobs.elements(re.sub(r"<!--.*?-->|<\?.*?\?>", "", text, flags=re.DOTALL)):
        for each in blobs.elements(root.inside):
            if each.tag == "plan_class" and (facts := _facts(list(blobs.elements(each.inside)))).name:
                found.setdefault(facts.name, facts)
    return found


def _facts(children: list[blobs.Element]) -> PlanClassFacts:
    values: dict[str, str] = {}
    for child in children:
        values.setdefault(child.tag, child.text)
    gpu = _GPUS.get(values.get("gpu_type", ""), ProcessorType.CPU)
    is_gpu = gpu is not ProcessorType.CPU
    most = min(max(int(blobs.number(values, "max_threads", 1)), 1), 1024)
    features = [child.text for child in children if child.tag == "cpu_feature"]
    lost = [tag for tag in values if tag not in _TAKEN | _HARMLESS and blobs.is_on(values, tag)]
    if values.get("gpu_type") and not is_gpu:
        lost.append("gpu_type")
    used = blobs.number(values, "avg_ncpus", 0.1 if is_gpu else 1.0)
    return PlanClassFacts(
        values.get("name", ""),
        gpu,
        max(int(blobs.number(values, "min_ncpus")), 0),
        1 if is_gpu else most,
        " ".join(features),
        int(max(blobs.number(values, "min_gpu_ram_mb"), 0) * MB),
        max(int(blobs.number(values, "min_driver_version")), 0),
        max(int(blobs.number(values, "min_nvidia_compcap")), 0),
        blobs.is_on(values, "opencl"),
        blobs.is_on(values, "docker"),
        blobs.is_on(values, "wsl"),
        blobs.is_on(values, "nthreads_cmdline"),
        min(max(used, 0.0 if is_gpu else 0.01), 1024.0),
        min(max(blobs.number(values, "ngpus", 1.0), 0.01), 64.0) if is_gpu else 0.0,
        min(max(blobs.number(values, "projected_flops_scale", 1.0), 0.01), 100.0),
        lost,
    )


_BUILT_IN: Final[Iterable[tuple[str, PlanClassFacts]]] = (
    (r"opencl_nvidia.*", PlanClassFacts("", ProcessorType.NVIDIA, needs_opencl=True, avg_ncpus=0.1, gpu_usage=1)),
    (r"opencl_(ati|amd).*", PlanClassFacts("", ProcessorType.ATI, needs_opencl=True, avg_ncpus=0.1, gpu_usage=1)),
    (r"opencl_intel.*", PlanClassFacts("", ProcessorType.INTEL, needs_opencl=True, avg_ncpus=0.1, gpu_usage=1)),
    (r"cuda.*|nvidia.*", PlanClassFacts("", ProcessorType.NVIDIA, avg_ncpus=0.1, gpu_usage=1)),
    (r"(ati|amd).*", PlanClassFacts("", ProcessorType.ATI, avg_ncpus=0.1, gpu_usage=1)),
    (r"apple_gpu.*|metal.*", PlanClassFacts("", ProcessorType.APPLE, avg_ncpus=0.1, gpu_usage=1)),
    (r"mt", PlanClassFacts("", min_ncpus=2, max_ncpus=64, nthreads_cmdline=True)),
    (r"sse[23]|avx2?", PlanClassFacts("")),
    (r"nci", PlanClassFacts("", avg_ncpus=0.01)),
)


def built_in(name: str) -> PlanClassFacts:
    """One that the file does not have: BOINC's server knows it by its name, or the project's own program does."""
    for pattern, facts in _BUILT_IN:
        if re.fullmatch(pattern, name):
            features = name if name.startswith(("sse", "avx")) else ""
            values = {slot: getattr(facts, slot) for slot in PlanClassFacts.__slots__}
            return PlanClassFacts(**(values | {"name": name, "cpu_features": features}))
    return PlanClassFacts(name, lost=["no description of it"])
