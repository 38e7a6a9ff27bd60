"""Who would get a version: the computers that asked for work recently, by the rules of sending."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from django.conf import settings

from credit.engine.flops import Ceilings
from portal.models import Host
from portal.wire.hardware import Containers, Distro
from scheduler.engine.choice.client_versions import may_run, number_of
from scheduler.engine.choice.containers import usable
from scheduler.engine.choice.system_versions import libc_number, os_number
from scheduler.engine.choice.versions import usage_of
from scheduler.engine.facts import Computer, PlanClassRules, Version
from scheduler.engine.request import CPU, GPU_TYPES, Gpu
from scheduler.models import BetaTester

ACTIVE_DAYS: Final = 30
MAX_HOSTS: Final = 20_000
"""How many of the computers that asked last are examined."""
SHOWN_CLIENTS: Final = 8
ALSO_RUN: Final[Mapping[str, tuple[str, ...]]] = {
    "x86_64-pc-linux-gnu": ("i686-pc-linux-gnu",),
    "windows_x86_64": ("windows_intelx86",),
    "arm64-apple-darwin": ("x86_64-apple-darwin",),
}
"""Other platforms whose programs computers usually run, besides the platform that they report first."""
KNOWN_SINCE: Final[Mapping[str, tuple[int, int]]] = {"NVIDIA": (6, 4), "ATI": (6, 10), "intel_gpu": (7, 0)}
"""The first clients that can use this type; for other types, any client that reports one can use it."""
_NOT_STORED: Final[dict[str, Any]] = {
    **{"min_capability": 0, "max_capability": 0, "min_cuda": 0, "max_cuda": 0},
    **{"min_opencl": 0, "max_opencl": 0, "needs_doubles": False},
}
"""Conditions on properties of a GPU that the site does not store: all computers pass."""
SHARED_MEMORY_SINCE: Final = (6, 0)
"""The first clients that support versions with an api_version."""


@dataclass(frozen=True, slots=True)
class Audience:
    """Active computers by whether they fit.

    ``nothers``: of other platforms; ``nunfit``: without the processors, GPU or memory; ``ntoo_old``: with a client that
    is too old; ``clients``: those that fit, by the client's version. ``nown``, ``nvolunteers``: of those that fit, the
    requester's own, and those of volunteers who agreed to test.
    """

    nactive: int
    nfit: int
    nothers: int
    nunfit: int
    ntoo_old: int
    nown: int
    nvolunteers: int
    clients: list[tuple[str, int]]
    is_cut: bool


def read_audience(
    version: Version, plan_class: PlanClassRules | None, api_version: str, user_id: int, now: dt.datetime
) -> Audience:
    """Return who would get this version if it were sent to all now."""
    counts: Counter[str] = Counter()
    clients: Counter[str] = Counter()
    testers = set(BetaTester.objects.values_list("user_id", flat=True))
    hosts = _active(now)
    for host in hosts:
        what = _verdict(host, version, plan_class, api_version)
        counts[what] += 1
        if what == "fit":
            clients[".".join(host.client_version.split(".")[:2]) or "unknown"] += 1
            counts["own"] += host.owner_id == user_id
            counts["volunteers"] += host.owner_id in testers
    return Audience(
        nactive=len(hosts),
        nfit=counts["fit"],
        nothers=counts["other"],
        nunfit=counts["unfit"],
        ntoo_old=counts["old"],
        nown=counts["own"],
        nvolunteers=counts["volunteers"],
        clients=clients.most_common(SHOWN_CLIENTS),
        is_cut=len(hosts) == MAX_HOSTS,
    )


def _active(now: dt.datetime) -> list[Host]:
    since = now - dt.timedelta(days=ACTIVE_DAYS)
    hosts = Host.objects.filter(scheduler_record__last_rpc_at__gte=since, retired_at=None, merged_into=None)
    columns = ("owner_id", "client_version", "platform_name", "ncpus", "p_fpops", "p_features", "coprocs", "m_nbytes")
    more = ("os_name", "os_version", "p_vendor", "p_model", "virtualbox_version", "docker_version", "wsl", "not_used")
    return list(hosts.only(*columns, *more).order_by("-scheduler_record__last_rpc_at")[:MAX_HOSTS])


def _verdict(host: Host, version: Version, plan_class: PlanClassRules | None, api_version: str) -> str:
    if version.platform not in (host.platform_name, *ALSO_RUN.get(host.platform_name, ())):
        return "other"
    needed = max(KNOWN_SINCE.get(version.processor_type, (0, 0)), SHARED_MEMORY_SINCE if api_version else (0, 0))
    number = number_of(host.client_version)
    if _client(host.client_version) < needed or not may_run(number, version.min_client, version.max_client):
        return "old"
    ceilings = Ceilings(
        settings.AM_MAX_NCPUS, settings.AM_MAX_CPU_FLOPS, settings.AM_MAX_GPUS, settings.AM_MAX_GPU_FLOPS
    )
    stored = None if plan_class is None else replace(plan_class, **_NOT_STORED)
    usage = usage_of(version, stored, _computer(host), ceilings)
    return "fit" if usage is not None and usage.peak_flops > 0 else "unfit"


def _client(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,5}", version)[:2])


def _computer(host: Host) -> Computer:
    gpus = {gpu.type: gpu for gpu in _gpus(host.coprocs)}
    return Computer(
        ncpus=host.ncpus,
        p_fpops=host.p_fpops or 0.0,
        gpus=gpus,
        features=frozenset(host.p_features.split()),
        containers=usable(_containers(host), host.os_name, host.client_version, host.not_used),
        platform=host.platform_name,
        client=number_of(host.client_version),
        virtualbox=host.virtualbox_version,
        texts=(host.os_version, host.p_vendor, host.p_model),
        os_number=os_number(host.os_name, host.os_version),
        libc_number=libc_number(host.os_version),
    )


def _containers(host: Host) -> Containers:
    distros = (
        Distro(str(distro.get("name")), "", str(distro.get("docker_version") or ""), bool(distro.get("is_allowed")))
        for distro in host.wsl
    )
    return Containers(host.docker_version, tuple(distros))


def _gpus(coprocs: list[dict[str, Any]]) -> Iterator[Gpu]:
    """Return the GPUs as stored, for a computer that is not sending a request now (`_NOT_STORED`)."""
    for coproc in coprocs:
        if coproc.get("type") in GPU_TYPES:
            yield Gpu(
                type=coproc["type"],
                count=coproc.get("count") or 0,
                peak_flops=coproc.get("peak_flops") or 0.0,
                ram_bytes=coproc.get("ram_bytes") or 0,
                driver=_driver(str(coproc.get("driver_version") or "")) if coproc["type"] == "NVIDIA" else 0,
                has_opencl=bool(coproc.get("opencl_version")),
                model=str(coproc.get("name") or ""),
            )


def _driver(text: str) -> int:
    """Return NVIDIA's number as clients send it: 53504 for 535.04."""
    digits = re.sub(r"[^0-9]", "", text)[:9]
    return int(digits or 0)


def version_of(fields: Mapping[str, Any]) -> Version:
    """Build the facts of a version that is not stored from a draft's fields."""
    return Version(
        id=0,
        app_id=0,
        platform=fields.get("platform", ""),
        version_num=fields.get("version_num", 0),
        plan_class=fields.get("plan_class", ""),
        processor_type=fields.get("processor_type", CPU),
        avg_ncpus=fields.get("avg_ncpus", 1.0),
        gpu_usage=fields.get("gpu_usage", 0.0),
        min_gpu_ram_bytes=fields.get("min_gpu_ram_bytes", 0),
        min_client=fields.get("min_client_version", 0),
        max_client=fields.get("max_client_version", 0),
    )
