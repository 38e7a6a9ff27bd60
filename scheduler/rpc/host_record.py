"""Stores a computer's statistics at each scheduler request, and its hardware when it changes."""

from __future__ import annotations

import datetime as dt
from hashlib import blake2b
from typing import Any

from django.conf import settings

from portal.computers.host_columns import client_columns, hardware_columns
from portal.languages.messages import Message
from portal.wire.hardware import Hardware, hardware_digest, names_containers, parse_hardware
from scheduler.engine import copies
from scheduler.engine.request import CPU, SchedulerRequest
from scheduler.rpc import reports
from scheduler.rpc.choice.refusals import asks_too_soon
from scheduler.rpc.store import Account, KnownHost
from scheduler.rpc.writes import HostChanges, jobs_of_day_columns


def changes(
    request: SchedulerRequest, account: Account, host: KnownHost, reasons_given: list[str], now: dt.datetime
) -> HostChanges:
    """Return what to store about the computer; ``reasons_given``: why nothing was sent."""
    named_until = reports.named_until(account, host, request, now)
    repeats = reports.repeats(account, host, request)
    is_looked_for = request.asks_for_jobs and not asks_too_soon(request, account, now)
    work_asked_at = now.timestamp() if is_looked_for else host.work_asked_at
    on, active, gpu_active = request.available_fractions
    digest = _digest(request)
    connected = request.time_stats.get("connected_frac")
    available = request.time_stats.get("cpu_and_network_available_frac")
    statistics = {
        "time_stats": request.time_stats,
        "net_stats": request.net_stats,
        "disk_usage": request.disk_usage,
    }
    # A client starts counting again when it gets a number, and may then create a new CPID.
    is_new_number = host.id != request.hostid
    if is_new_number:
        repeats = copies.NO_REPEATS
    record = {
        "rpc_seqno": 0 if is_new_number else request.rpc_seqno,
        "cpids": [] if is_new_number else copies.seen(host.cpids, request.host.host_cpid),
        "named_jobs_until": _moment(0.0 if is_new_number else named_until),
        "repeated_seqno": repeats.seqno,
        "repeated_times": repeats.times,
        "work_asked_at": _moment(work_asked_at),
        "on_frac": on,
        "active_frac": active,
        "gpu_active_frac": gpu_active,
        "connected_frac": _fraction(connected),
        "cpu_and_network_available_frac": _fraction(available),
        "duration_correction_factor": request.duration_correction_factor,
        "statistics": statistics,
        "hardware_digest": f"\\x{digest}",
        "last_messages": reasons_given,
        **jobs_of_day_columns(account.jobs_of_day),
    }
    is_described = digest != host.hardware_digest and bool(request.host.raw)
    return HostChanges(record, host.rpc_seqno is None, _columns(request) if is_described else None)


def _moment(secs: float) -> str | None:
    return dt.datetime.fromtimestamp(secs, dt.UTC).isoformat() if secs else None


def _fraction(fraction: float | None) -> float | None:
    """Return a fraction; clients send -1 for "unknown"."""
    return fraction if fraction is not None and 0 <= fraction <= 1 else None


def _digest(request: SchedulerRequest) -> str:
    """Return a digest that changes when the stored description of the computer must."""
    described = [request.host.domain_name, request.client_version, request.platform_name]
    # Most computers do not report these; then their stored description need not be stored again.
    rare = [*request.refused_containers, request.client_brand, request.client_opaque]
    if any(rare) or names_containers(request.host.raw):
        described += ["containers", *rare]
    text = "\n".join(described).encode()
    parts = hardware_digest(request.host.raw) + hardware_digest(request.coprocs_raw) + text
    return blake2b(parts, digest_size=16).hexdigest()


def _columns(request: SchedulerRequest) -> dict[str, Any]:
    """Return the computer's columns, for JSON.

    A scheduler request has coprocessors next to the other hardware; account-manager requests have them inside it.
    """
    hardware = parse_hardware(request.host.raw + b"<coprocs>" + request.coprocs_raw + b"</coprocs>")
    host = request.host
    return {
        **client_columns(host.host_cpid, host.domain_name, request.client_version, request.platform_name),
        **hardware_columns(hardware, _cuts(hardware)),
        "not_used": list(request.refused_containers),
        "client_brand": request.client_brand,
        "client_opaque": request.client_opaque,
    }


def _cuts(hardware: Hardware) -> list[Message]:
    """List claims of the computer that are not believed when a job's peak FLOPS is computed (`credit.engine.flops`)."""
    gpus = [coproc for coproc in hardware.coprocs if coproc.type != CPU]
    claims = [
        ("p_ncpus", hardware.ncpus, settings.AM_MAX_NCPUS),
        ("p_fpops", hardware.p_fpops, settings.AM_MAX_CPU_FLOPS),
        *((f"{gpu.type} count", gpu.count, settings.AM_MAX_GPUS) for gpu in gpus),
    ]
    cuts = [
        Message("reported_above_believed", field=field, claimed=claimed, most=most)
        for field, claimed, most in claims
        if claimed is not None and claimed > most
    ]
    speeds = [(gpu.type, gpu.peak_flops or 0.0) for gpu in gpus]
    return cuts + [
        Message("reported_gpu_speed", field=f"{type_} peak_flops", claimed=flops)
        for type_, flops in speeds
        if not 0 < flops <= settings.AM_MAX_GPU_FLOPS
    ]
