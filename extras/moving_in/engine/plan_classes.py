"""Plan classes of a BOINC project: of plan_class_spec.xml, and those that BOINC's server has without one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from credit.engine.facts import ProcessorType
from extras.moving_in.engine import blobs
from scheduler.engine.choice.plan_classes import is_pattern

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
        *("projected_flops_scale", "min_core_client_version", "max_core_client_version", "max_driver_version"),
        *("max_nvidia_compcap", "min_cuda_version", "max_cuda_version", "min_opencl_version", "max_opencl_version"),
        *("min_gpu_peak_flops", "max_gpu_peak_flops", "double_precision_fp", "gpu_ram_used_mb", "cpu_frac"),
        *("os_regex", "cpu_vendor_regex", "cpu_model_regex", "virtualbox", "vm_accel_required", "min_vbox_version"),
        *(
            "max_vbox_version",
            "exclude_vbox_version",
            "is64bit",
            "min_os_version",
            "max_os_version",
            "min_libc_version",
        ),
    }
)
_PATTERNS: Final = ("os_regex", "cpu_vendor_regex", "cpu_model_regex")
_HARMLESS: Final = frozenset(
    {
        *("cuda", "cal", "gpu_peak_flops_scale", "gpu_utilization_tag", "infeasible_random"),
        *("mem_usage_base_mb", "mem_usage_per_cpu_mb", "project_prefs_default_true", "disabled"),
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
    min_client_version: int = 0
    max_client_version: int = 0
    max_driver_version: int = 0
    max_compute_capability: int = 0
    min_cuda_version: int = 0
    max_cuda_version: int = 0
    min_opencl_version: int = 0
    max_opencl_version: int = 0
    min_gpu_peak_flops: float = 0.0
    max_gpu_peak_flops: float = 0.0
    needs_double_precision: bool = False
    gpu_ram_used_bytes: int = 0
    cpu_share: float = 0.0
    os_pattern: str = ""
    cpu_vendor_pattern: str = ""
    cpu_model_pattern: str = ""
    needs_virtualbox: bool = False
    needs_vm_acceleration: bool = False
    min_virtualbox_version: int = 0
    max_virtualbox_version: int = 0
    excluded_virtualbox_versions: str = ""
    min_os_version: int = 0
    max_os_version: int = 0
    min_libc_version: int = 0
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
    lost += [tag for tag in _PATTERNS if not is_pattern(values.get(tag, ""))]
    excluded = [child.text.strip() for child in children if child.tag == "exclude_vbox_version"]
    used = blobs.number(values, "avg_ncpus", 0.1 if is_gpu else 1.0)
    is_cuda, is_opencl = blobs.is_on(values, "cuda"), blobs.is_on(values, "opencl")

    def count(tag: str, counts: bool = True) -> int:
        return int(min(max(blobs.number(values, tag), 0), 2**31 - 1)) if counts else 0

    def pattern(tag: str) -> str:
        return values.get(tag, "") if tag not in lost else ""

    def client(tag: str) -> int:
        return count(tag) * 100 if count(tag) < 10_000 else count(tag)

    def flops(tag: str) -> float:
        return min(max(blobs.number(values, tag), 0.0), 1e18)

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
        # Before 6.10, versions of clients were told as major × 100.
        client("min_core_client_version"),
        client("max_core_client_version"),
        count("max_driver_version"),
        count("max_nvidia_compcap"),
        count("min_cuda_version", is_cuda),
        count("max_cuda_version", is_cuda),
        count("min_opencl_version", is_opencl),
        count("max_opencl_version", is_opencl),
        flops("min_gpu_peak_flops"),
        flops("max_gpu_peak_flops"),
        is_opencl and blobs.is_on(values, "double_precision_fp"),
        int(min(max(blobs.number(values, "gpu_ram_used_mb"), 0), 2**30) * MB),
        min(max(blobs.number(values, "cpu_frac", 0.1), 0.0), 1.0) if is_gpu and "avg_ncpus" not in values else 0.0,
        pattern("os_regex"),
        pattern("cpu_vendor_regex"),
        pattern("cpu_model_regex"),
        blobs.is_on(values, "virtualbox"),
        blobs.is_on(values, "vm_accel_required"),
        count("min_vbox_version"),
        count("max_vbox_version"),
        " ".join(number for number in excluded if re.fullmatch(r"[0-9]{1,9}", number))[:200].strip(),
        count("min_os_version"),
        count("max_os_version"),
        count("min_libc_version"),
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
    (r"vbox(32|64)_mt", PlanClassFacts("", needs_virtualbox=True, max_ncpus=2, needs_vm_acceleration=True)),
    (r"vbox(32|64)?_hwaccel", PlanClassFacts("", needs_virtualbox=True, needs_vm_acceleration=True)),
    (r"vbox(32|64)?", PlanClassFacts("", needs_virtualbox=True)),
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
