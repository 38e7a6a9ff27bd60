"""A scheduler request's description of its computer: processors, versions of apps, and the requested work. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from portal.wire.hardware import parse_containers
from portal.wire.names import cleaned
from portal.wire.scanner import Fields, TagScanner, clip, flag, float_or_none
from scheduler.engine.request import CPU, ClientVersion, Gpu, HostInfo, SchedulerRequest, WorkRequest
from scheduler.wire.request_fields import END, LIMITS, MAX_BYTES, MAX_FLOPS, MAX_INT, MAX_NAME, MAX_SECS, int_or_none

MAX_GPU_TYPES: Final = 16
MAX_FEATURES: Final = 4096
MAX_GPU_MODEL: Final = 256
"""The length in bytes of the names of a processor's features."""
MAX_TYPE_NAME: Final = 16
"""The length in characters of a processor type, as stored with results."""
_HOST: Final = re.compile(
    rb"<(host_cpid|domain_name|os_name|os_version|p_vendor|p_model|p_features|p_vm_extensions_disabled|p_ncpus|p_fpops"
    rb"|m_nbytes|d_free|virtualbox_version)>([^<]*+)</\1>"
)
_BELOW_WINDOWS: Final = re.compile(rb"<wsl>.*?</wsl>", re.DOTALL)
_OPENCL_VERSION: Final = re.compile(rb"<opencl_device_version>\s*+OpenCL (\d{1,3})\.(\d{1,2})")
_DOUBLES: Final = re.compile(rb"<double_fp_config>\s*+0*+[1-9]")
_CAL: Final = re.compile(rb"\s*+(\d{1,2})\.(\d{1,3})\.(\d{1,4})")
COPROCESSORS: Final = {
    b"coproc_cuda": "NVIDIA",
    b"coproc_ati": "ATI",
    b"coproc_intel_gpu": "intel_gpu",
    b"coproc_apple_gpu": "apple_gpu",
    b"coproc": "",
}
_OPENCL_RAM: Final = re.compile(rb"<(?:global_mem_size|global_RAM)>([^<]*+)<")
_COPROC_TYPE: Final = re.compile(rb"<type>([^<]*+)<")
_COPROC_COUNT: Final = re.compile(rb"<count>([^<]*+)<")
_TYPE_NAMES: Final = {"CUDA": "NVIDIA", "nvidia": "NVIDIA"}


def take_work_request(request: SchedulerRequest, values: dict[bytes, bytes | None]) -> None:
    """Read how much work is requested of each type, and the coprocessors that include it.

    New-style if any of the tags is there, even with 0 (work fetch document, scheduler changes).
    """
    request.work_req_secs = float_or_none(values.get(b"work_req_seconds"), 0, MAX_SECS) or 0.0
    delay_secs = float_or_none(values.get(b"estimated_delay"), 0, MAX_SECS) or 0.0
    request.is_new_style = b"cpu_req_secs" in values or b"cpu_req_instances" in values
    request.work_requests[CPU] = WorkRequest(
        float_or_none(values.get(b"cpu_req_secs"), 0, MAX_SECS) or 0.0,
        float_or_none(values.get(b"cpu_req_instances"), 0, 1e6) or 0.0,
        delay_secs,
    )
    request.coprocs_raw = values.get(b"coprocs") or b""
    gpus: dict[str, Gpu] = {}
    scan = TagScanner(request.coprocs_raw, LIMITS)
    while (tag := scan.next()) is not None and len(gpus) < MAX_GPU_TYPES:
        if tag not in COPROCESSORS:
            continue
        fields = dict(scan.fields(tag, END))
        kind = COPROCESSORS[tag] or clip(fields.get(b"type", b""), 64)
        if b"req_secs" in fields or b"req_instances" in fields:
            request.is_new_style = True
        count = int_or_none(fields.get(b"count"), 0, 1024) or 0
        if not kind or len(kind) > MAX_TYPE_NAME or kind == CPU or not count or kind in gpus:
            continue
        gpus[kind] = _gpu(kind, count, fields)
        request.work_requests[kind] = WorkRequest(
            float_or_none(fields.get(b"req_secs"), 0, MAX_SECS) or 0.0,
            float_or_none(fields.get(b"req_instances"), 0, 1e6) or 0.0,
            float_or_none(fields.get(b"estimated_delay"), 0, MAX_SECS) or 0.0,
        )
    request.gpus = tuple(gpus.values())
    if not request.is_new_style:
        request.work_requests = {CPU: WorkRequest(request.work_req_secs, 0.0, delay_secs)}


def _gpu(kind: str, count: int, fields: dict[bytes, bytes]) -> Gpu:
    opencl = fields.get(b"coproc_opencl", b"")
    match = _OPENCL_RAM.search(opencl)
    ram = float_or_none(fields.get(b"totalGlobalMem"), 0, MAX_BYTES)
    if not ram and (megabytes := float_or_none(fields.get(b"localRAM"), 0, MAX_BYTES / (1 << 20))):
        ram = megabytes * (1 << 20)
    if not ram and match:
        ram = float_or_none(match[1], 0, MAX_BYTES)
    version = _OPENCL_VERSION.search(opencl)
    cal = _CAL.match(fields.get(b"CALVersion", b""))
    driver = int_or_none(fields.get(b"drvVersion"), 0, MAX_INT) or 0
    if cal and not driver:
        driver = int(cal[1]) * 10_000_000 + int(cal[2]) * 10_000 + int(cal[3])
    return Gpu(
        type=kind,
        count=count,
        peak_flops=float_or_none(fields.get(b"peak_flops"), 0, MAX_FLOPS) or 0.0,
        ram_bytes=int(ram or 0),
        driver=driver,
        capability=100 * (int_or_none(fields.get(b"major"), 0, 1000) or 0)
        + (int_or_none(fields.get(b"minor"), 0, 99) or 0),
        has_opencl=flag(fields.get(b"have_opencl")) or bool(opencl),
        opencl=int(version[1]) * 100 + int(version[2]) if version else 0,
        cuda=int_or_none(fields.get(b"cudaVersion"), 0, MAX_INT) or 0,
        has_doubles=_DOUBLES.search(opencl) is not None,
        model=clip(fields.get(b"name", b""), MAX_GPU_MODEL, entities=True),
    )


@lru_cache(maxsize=256)
def _features(raw: bytes) -> frozenset[str]:
    """Parse processor features. Cached, because there are a hundred or more names, equal for all such processors."""
    return frozenset(clip(raw, MAX_FEATURES, entities=True).split())


def host_of(raw: bytes) -> HostInfo:
    values: dict[bytes, bytes] = {}
    # A Linux on Windows (WSL) has a name and a version, too.
    for name, text in _HOST.findall(_BELOW_WINDOWS.sub(b"", raw) if b"<wsl>" in raw else raw):
        values.setdefault(name, text)

    def text_of(name: bytes, most: int) -> str:
        return cleaned(clip(values.get(name, b""), most, entities=True))

    return HostInfo(
        host_cpid=text_of(b"host_cpid", 32),
        domain_name=text_of(b"domain_name", 255),
        os_name=text_of(b"os_name", 128),
        os_version=text_of(b"os_version", 256),
        p_vendor=text_of(b"p_vendor", 128),
        p_model=text_of(b"p_model", 256),
        p_features=_features(values.get(b"p_features", b"")[:MAX_FEATURES]),
        ncpus=int_or_none(values.get(b"p_ncpus"), 1, 65_535) or 1,
        p_fpops=float_or_none(values.get(b"p_fpops"), 0, MAX_FLOPS) or 0.0,
        m_nbytes=float_or_none(values.get(b"m_nbytes"), 1, MAX_BYTES),
        d_free=float_or_none(values.get(b"d_free"), 0, MAX_BYTES),
        containers=parse_containers(raw),
        virtualbox_version=text_of(b"virtualbox_version", 64),
        allows_vms=not flag(values.get(b"p_vm_extensions_disabled")),
        raw=raw,
    )


def client_version(fields: Fields) -> ClientVersion:
    values = dict(fields)
    coproc = values.get(b"coproc", b"")
    kind, count = _COPROC_TYPE.search(coproc), _COPROC_COUNT.search(coproc)
    type_ = clip(kind[1], 64) if kind else ""
    return ClientVersion(
        app_name=clip(values.get(b"app_name", b""), MAX_NAME),
        version_num=int_or_none(values.get(b"version_num"), 0, MAX_INT) or 0,
        platform=clip(values.get(b"platform", b""), 64),
        plan_class=clip(values.get(b"plan_class", b""), 64),
        avg_ncpus=float_or_none(values.get(b"avg_ncpus"), 0, 1024) or 0.0,
        flops=float_or_none(values.get(b"flops"), 0, MAX_FLOPS) or 0.0,
        gpu_type=_TYPE_NAMES.get(type_, type_),
        gpu_count=(float_or_none(count[1], 0, 64) or 0.0) if count else 0.0,
    )
