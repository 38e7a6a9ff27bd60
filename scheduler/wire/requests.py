"""Parses the scheduler request of a client (BOINC protocol, scheduler request) into `scheduler.engine.request`.

Pure: bytes in, dataclasses out. A strange value does not spoil the rest: it becomes the default, or a fault of its
result. ProtocolError is for messages beyond the hard limits, truncated ones, and account keys that no client could
hold. If an element comes twice, the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from portal.wire.scanner import ProtocolError, TagScanner, as_text, clip, flag, float_or_none
from scheduler.engine.limits import is_job_name
from scheduler.engine.request import CPU, SchedulerRequest
from scheduler.wire.described import client_version, host_of, take_work_request
from scheduler.wire.reported import pass_over_result, take_message, take_result, weigh_messages
from scheduler.wire.request_fields import (
    END,
    LIMITS,
    MAX_BYTES,
    MAX_NAME,
    MAX_SECS,
    NAMES,
    fraction,
    int_or_none,
    numbers,
)

MAX_RESULTS: Final = 500
"""The number of results that are read; the client reports the others again, because they are not acknowledged."""
MAX_OTHER_RESULTS: Final = 5000
MAX_CLIENT_VERSIONS: Final = 200
MAX_HELD_FILES: Final = 500
"""The number of names read of files kept after their jobs. Others are read once some of these are gone."""
MAX_PLATFORMS: Final = 16
MAX_BRAND: Final = 64
MAX_OPAQUE: Final = 1000
MAX_KEYWORDS: Final = 500
"""The limit for each of a volunteer's two kinds."""

_ROOT: Final = b"scheduler_request"

_SIMPLE: Final = frozenset(
    {
        b"authenticator", b"hostid", b"rpc_seqno", b"core_client_major_version", b"core_client_minor_version",
        b"core_client_release", b"allow_multiple_clients", b"dont_send_work", b"work_req_seconds", b"cpu_req_secs",
        b"cpu_req_instances", b"estimated_delay", b"platform_name", b"cross_project_id",
        b"duration_correction_factor", b"global_prefs_source_email_hash", b"client_brand", b"dont_use_docker",
        b"dont_use_wsl",
    }
)  # fmt: skip
_SECTIONS: Final = frozenset(
    {
        b"working_global_preferences", b"global_preferences", b"project_preferences", b"code_sign_key",
        b"time_stats", b"net_stats", b"host_info", b"disk_usage", b"coprocs", b"other_results", b"user_keywords",
        b"client_opaque", b"in_progress_results",
    }
)  # fmt: skip

_KEYWORDS: Final = re.compile(rb"<(yes|no)>\s*+(\d{1,9})\s*+</\1>")
_DEADLINE: Final = re.compile(rb"<name>([^<]*+)</name>\s*+<report_deadline>([0-9]{1,12})<")
_CDATA: Final = re.compile(rb"^\s*+<!\[CDATA\[|\]\]>\s*+$")
# Usable numbers of <net_stats>: the averages are nonsense on fast networks.
_NET_STATS: Final = frozenset({"bwup", "bwdown"})
_MOD_TIME: Final = re.compile(rb"<mod_time>([^<]*+)<")
MAX_PREFERENCES: Final = 1 << 16  # bytes of preferences passed on to the volunteer's other computers
_NCPUS_LIMIT: Final = re.compile(rb"<max_ncpus_pct>\s*+([0-9.]{1,16})\s*+<")
_RAM_LIMIT: Final = re.compile(rb"<ram_max_used_(?:busy|idle)_(?:pct|frac)>([0-9.]{1,16})<")
# Preferences by which a volunteer excludes types of processors from this project.
_REFUSED: Final = re.compile(rb"<(no_gpus|no_cpu|no_cuda|no_ati|no_intel_gpu|no_apple_gpu)(?:\s*/>|>\s*1\s*<)")
_REFUSED_TYPES: Final = {
    b"no_cpu": (CPU,),
    b"no_cuda": ("NVIDIA",),
    b"no_ati": ("ATI",),
    b"no_intel_gpu": ("intel_gpu",),
    b"no_apple_gpu": ("apple_gpu",),
}


def parse_request(body: bytes, *, is_cut: bool = False) -> SchedulerRequest:
    """Parse a <scheduler_request>. Raises ProtocolError naming the field and the limit.

    ``is_cut``: this is only the beginning of a message that was too long. It is read up to its last complete result or
    trickle-up message, and treated as asking for no work. The client reports the other results once these are
    acknowledged. For trickle-up messages see `reported.weigh_messages`.
    """
    scan = TagScanner(body, LIMITS)
    if scan.next() != _ROOT:
        raise ProtocolError("scheduler_request", "the message does not begin with this element")
    scan.enter()
    fields: dict[bytes, bytes | None] = {}
    platforms: list[str] = []
    messages_at: int | None = None
    held_files: list[str] = []
    request = SchedulerRequest()
    while (tag := scan.next()) is not None:
        if tag in _SIMPLE:
            fields.setdefault(tag, scan.element_text(tag))
        elif tag == b"result":
            read = take_result if len(request.results) < MAX_RESULTS else pass_over_result
            if not read(request, scan, is_cut) and is_cut:
                break  # its content is not part of the message: a program may have written it
        elif tag in _SECTIONS:
            fields.setdefault(tag, scan.section(tag))
        elif tag == b"msg_from_host":
            messages_at = scan.start if messages_at is None else messages_at
            if not take_message(request, scan, is_cut) and is_cut:
                break
        elif tag == b"app_version":
            if len(request.client_versions) < MAX_CLIENT_VERSIONS:
                request.client_versions.append(client_version(scan.fields(tag, END)))
            else:
                scan.section(tag)
        elif tag == b"file_info":
            if len(held_files) < MAX_HELD_FILES:
                held_files += _held_file(scan.element_text(tag))
            else:
                scan.skip(tag)
        elif tag == b"alt_platform":
            platforms += [clip(name, 64) for name in NAMES.findall(scan.element_text(tag))]
        elif tag == b"app_versions":
            scan.enter()
        elif tag == b"/scheduler_request":
            break
        elif not tag.startswith(b"/"):
            scan.skip(tag)
    if tag != b"/scheduler_request" and not (is_cut and (request.results or messages_at is not None)):
        raise ProtocolError("scheduler_request", "not closed: the message was cut off")
    request.alt_platforms = tuple(platforms[:MAX_PLATFORMS])
    request.held_files = frozenset(held_files)
    request = _completed(request, fields)
    if is_cut:
        request.sends_no_work, request.is_cut, request.other_results = True, True, None
        weigh_messages(request, 0 if messages_at is None else len(body) - messages_at, len(body))
    return request


def _held_file(raw: bytes) -> list[str]:
    """Return the file's name, if it can be one of ours."""
    name = NAMES.search(raw)
    text = clip(name[1], MAX_NAME + 1) if name is not None else ""
    return [text] if is_job_name(text, MAX_NAME) else []


def authenticator_of(head: bytes) -> str:
    """Return the account key at the beginning of a message, empty if there is none. Raises ProtocolError like
    `parse_request`.

    So a long message is read only for a known account. Clients write the key first.
    """
    scan = TagScanner(head, LIMITS)
    while (tag := scan.next()) is not None:
        if tag == b"authenticator":
            return as_text("authenticator", scan.element_text(tag), MAX_NAME)
        if tag in _SECTIONS or tag in (b"result", b"msg_from_host", b"app_version"):
            break
    return ""


def _completed(request: SchedulerRequest, fields: dict[bytes, bytes | None]) -> SchedulerRequest:
    def raw(tag: bytes) -> bytes:
        return fields.get(tag) or b""

    request.authenticator = as_text("authenticator", raw(b"authenticator"), MAX_NAME)
    request.hostid = int_or_none(raw(b"hostid"), 0, 2**63 - 1) or 0
    request.rpc_seqno = int_or_none(raw(b"rpc_seqno"), 0, 2**63 - 1) or 0
    request.client_version = ".".join(
        str(int_or_none(raw(tag), 0, 999_999) or 0)
        for tag in (b"core_client_major_version", b"core_client_minor_version", b"core_client_release")
    )
    request.allows_multiple_clients = flag(fields.get(b"allow_multiple_clients"))
    request.sends_no_work = flag(fields.get(b"dont_send_work"))
    request.platform_name = clip(raw(b"platform_name"), 64)
    request.code_sign_key = clip(raw(b"code_sign_key")[:4096], 4096)
    request.cross_project_id = clip(raw(b"cross_project_id"), 32)
    request.duration_correction_factor = float_or_none(raw(b"duration_correction_factor"), 1e-6, 1e6) or 1.0
    take_work_request(request, fields)
    _take_what_is_rare(request, fields)
    _take_preferences(request, raw(b"global_preferences"), raw(b"global_prefs_source_email_hash"))
    preferences = raw(b"working_global_preferences") + raw(b"global_preferences") + raw(b"project_preferences")
    request.refused_types = _refused_types(preferences, [gpu.type for gpu in request.gpus])
    limits = [
        percent
        for text in _RAM_LIMIT.findall(raw(b"working_global_preferences"))
        if (percent := float_or_none(text, 0, 100))
    ]
    request.ram_fraction = max(limits) / 100 if limits else 1.0
    if (ncpus := _NCPUS_LIMIT.search(raw(b"working_global_preferences"))) is not None:
        # 0 means all, as in clients.
        request.ncpus_percent = float_or_none(ncpus[1], 0, 100) or 100.0
    request.time_stats = numbers(raw(b"time_stats"), MAX_SECS)
    request.available_fractions = (
        fraction(request.time_stats.get("on_frac")),
        fraction(request.time_stats.get("active_frac")),
        fraction(request.time_stats.get("gpu_active_frac")),
    )
    net_stats = numbers(raw(b"net_stats"), 1e12)
    request.net_stats = {name: number for name, number in net_stats.items() if name in _NET_STATS}
    request.disk_usage = numbers(raw(b"disk_usage"), MAX_BYTES)
    request.host = host_of(raw(b"host_info"))
    request.named_deadlines = {
        clip(match[1], MAX_NAME): float(match[2])
        for match in islice(_DEADLINE.finditer(raw(b"in_progress_results")), MAX_OTHER_RESULTS)
    }
    if b"other_results" in fields:
        names = NAMES.findall(raw(b"other_results"))
        if len(names) <= MAX_OTHER_RESULTS:
            request.other_results = frozenset(clip(name, MAX_NAME) for name in names)
    return request


def _take_what_is_rare(request: SchedulerRequest, fields: dict[bytes, bytes | None]) -> None:
    """Read what recent clients report about themselves, and what the volunteer's account manager had them forward."""
    refused = (("docker", b"dont_use_docker"), ("wsl", b"dont_use_wsl"))
    request.refused_containers = tuple(name for name, tag in refused if flag(fields.get(tag)))
    request.client_brand = clip(fields.get(b"client_brand") or b"", MAX_BRAND, entities=True)
    request.client_opaque = clip(_CDATA.sub(b"", (fields.get(b"client_opaque") or b"")[: 8 * MAX_OPAQUE]), MAX_OPAQUE)
    if keywords := fields.get(b"user_keywords"):
        named = [(match[1], int(match[2])) for match in islice(_KEYWORDS.finditer(keywords), 2 * MAX_KEYWORDS)]
        request.keywords_yes = frozenset(number for kind, number in named if kind == b"yes")
        request.keywords_no = frozenset(number for kind, number in named if kind == b"no")


def _take_preferences(request: SchedulerRequest, raw: bytes, email_hash: bytes) -> None:
    """Read the client's general preferences, when they were saved, and on which site."""
    if (match := _MOD_TIME.search(raw)) is not None:
        request.preferences_at = float_or_none(match[1], 0, MAX_SECS) or 0.0
        request.preferences_raw = raw if len(raw) <= MAX_PREFERENCES else b""
        request.preferences_email_hash = clip(email_hash, 32)


def _refused_types(preferences: bytes, gpu_types: Sequence[str]) -> frozenset[str]:
    """Return the processor types that a volunteer's preferences exclude.

    ``gpu_types``: those that this computer has.
    """
    refused: set[str] = set()
    for tag in set(_REFUSED.findall(_without_venues(preferences))):
        refused.update(_REFUSED_TYPES.get(tag, gpu_types))
    return frozenset(refused)


def _without_venues(preferences: bytes) -> bytes:
    """Return the preferences for all venues. Those of this computer's own venue are in the working preferences."""
    pieces, at = [], 0
    while (begin := preferences.find(b"<venue", at)) >= 0 and (end := preferences.find(b"</venue>", begin)) >= 0:
        pieces.append(preferences[at:begin])
        at = end
    return b"".join([*pieces, preferences[at:]])
