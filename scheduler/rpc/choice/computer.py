"""The requesting computer as the rules of sending see it, and the limits from the settings."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from credit.engine.flops import Ceilings
from portal.clients.database.settings_cache import cached_setting
from scheduler.engine.choice import containers
from scheduler.engine.choice.client_versions import ClientLimits, number_of
from scheduler.engine.choice.selection import Limits
from scheduler.engine.choice.system_versions import libc_number, os_number
from scheduler.engine.facts import Computer
from scheduler.engine.project_preferences import NOTHING_CHOSEN, ProjectPreferences
from scheduler.engine.request import GPU_TYPES, SchedulerRequest


def computer_of(request: SchedulerRequest, preferences: ProjectPreferences = NOTHING_CHOSEN) -> Computer:
    """Build the computer from this request's description, as far as its owner lets this project use it."""
    ncpus = min(request.usable_ncpus, settings.AM_MAX_NCPUS)
    host = request.host
    on, active, gpu_active = request.available_fractions
    disk, used = request.disk_usage.get("d_project_share"), request.disk_usage.get("d_boinc_used_project", 0.0)
    free = host.d_free if disk is None or disk <= 0 else max(0.0, disk - max(used, 0.0))
    return Computer(
        ncpus=min(ncpus, preferences.max_cpus or ncpus),
        p_fpops=host.p_fpops,
        gpus={
            gpu.type: replace(gpu, count=min(gpu.count, settings.AM_MAX_GPUS))
            for gpu in request.gpus
            if gpu.type in GPU_TYPES
        },
        features=host.p_features,
        ram_bytes=None if host.m_nbytes is None else host.m_nbytes * request.ram_fraction,
        disk_bytes=free,
        cpu_availability=on * active,
        gpu_availability=on * gpu_active,
        containers=containers.usable(host.containers, host.os_name, request.client_version, request.refused_containers),
        max_threads=preferences.max_threads,
        is_limited=(preferences.max_cpus or ncpus) < ncpus,
        os_name=host.os_name,
        platform=request.platform_name,
        client=number_of(request.client_version),
        virtualbox=host.virtualbox_version,
        allows_vms=host.allows_vms,
        texts=(host.os_version, host.p_vendor, host.p_model),
        os_number=os_number(host.os_name, host.os_version),
        libc_number=libc_number(host.os_version),
    )


@cached_setting
def ceilings() -> Ceilings:
    """Return the most that a computer may claim to have: the same as for the account manager."""
    return Ceilings(settings.AM_MAX_NCPUS, settings.AM_MAX_CPU_FLOPS, settings.AM_MAX_GPUS, settings.AM_MAX_GPU_FLOPS)


@cached_setting
def client_limits() -> ClientLimits:
    """Return which versions of BOINC's client get work here at all."""
    return ClientLimits(
        number_of(settings.MIN_CLIENT_VERSION),
        number_of(settings.MAX_CLIENT_VERSION),
        settings.MIN_CLIENT_VERSION_FROM,
    )


@cached_setting
def job_limits() -> Limits:
    """Return how many jobs a computer may have at once, and get in a reply."""
    return Limits(settings.MAX_JOBS_IN_PROGRESS, settings.MAX_GPU_JOBS_IN_PROGRESS, settings.MAX_JOBS_PER_RPC)
