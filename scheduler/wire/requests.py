"""The scheduler request as a client sends it (BOINC protocol, scheduler request), read into `scheduler.engine.request`.

Pure: bytes in, dataclasses out. A strange value does not spoil the rest: it becomes the default, or a fault of the
result that it is about. ProtocolError is for messages beyond the hard limits, those that were cut off, and account keys
that no client could hold. If an element comes twice, the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from portal.wire.hardware import parse_containers
from portal.wire.scanner import (
    Fields,
    Limits,
    ProtocolError,
    TagScanner,
    as_float,
    as_int,
    as_text,
    clip,
    flag,
    float_or_none,
)
from scheduler.engine.request import (
    CPU,
    ClientVersion,
    Gpu,
    HostInfo,
    ReportedFile,
    ReportedResult,
    SchedulerRequest,
    TrickleUp,
    WorkRequest,
)

LIMITS: Final = Limits(body_bytes=16 << 20, elements=200_000, text_bytes=1 << 18)
MAX_RESULTS: Final = 500
"""Results that are read; the client reports others again at its next request, as they are not acknowledged."""
MAX_OTHER_RESULTS: Final = 5000
MAX_MESSAGES: Final = 5000
"""There is one acknowledgement for all of them, so few clients may really have more."""
MAX_CLIENT_VERSIONS: Final = 200
MAX_FILES: Final = 100
MAX_GPU_TYPES: Final = 16
MAX_FEATURES: Final = 4096
"""Bytes of the names of a processor's features."""
MAX_TYPE_NAME: Final = 16
"""Characters of a processor type, as results keep it."""
MAX_PLATFORMS: Final = 16
MAX_NAME: Final = 255
MAX_BRAND: Final = 64
MAX_OPAQUE: Final = 1000
MAX_KEYWORDS: Final = 500
"""Of a volunteer, of each kind."""
MAX_STDERR: Final = 1 << 16
"""Characters kept of a job's stderr: its end, which says what went wrong."""
MAX_TRICKLE: Final = 1 << 16

_ROOT: Final = b"scheduler_request"
_MAX_SECS: Final = 1e11
_MAX_FLOPS: Final = 1e18
_MAX_FLOP_COUNT: Final = 1e25
_MAX_BYTES: Final = 1e18
_INT: Final = 2**31 - 1

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
        b"client_opaque",
    }
)  # fmt: skip
_END: Final = frozenset({b"/scheduler_request", b"host_info", b"result", b"app_versions", b"other_results"})

_NAMES: Final = re.compile(rb"<name>([^<]*+)</name>")
_KEYWORDS: Final = re.compile(rb"<(yes|no)>\s*+(\d{1,9})\s*+</\1>")
_CDATA: Final = re.compile(rb"^\s*+<!\[CDATA\[|\]\]>\s*+$")
_NUMBERS: Final = re.compile(rb"<(\w{1,40}+)>([-+0-9.eE]{1,32})</\1>")
_HOST: Final = re.compile(
    rb"<(host_cpid|domain_name|os_name|p_vendor|p_model|p_features|p_ncpus|p_fpops|m_nbytes|d_free)>([^<]*+)</\1>"
)
# Numbers of <net_stats> that mean something: the averages hold nonsense on fast networks.
_NET_STATS: Final = frozenset({"bwup", "bwdown"})
_MOD_TIME: Final = re.compile(rb"<mod_time>([^<]*+)<")
MAX_PREFERENCES: Final = 1 << 16  # bytes of preferences that are handed on to the volunteer's other computers
_RAM_LIMIT: Final = re.compile(rb"<ram_max_used_(?:busy|idle)_(?:pct|frac)>([0-9.]{1,16})<")
COPROCESSORS: Final = {
    b"coproc_cuda": "NVIDIA",
    b"coproc_ati": "ATI",
    b"coproc_intel_gpu": "intel_gpu",
    b"coproc_apple_gpu": "apple_gpu",
    b"coproc": "",
}
_OPENCL_RAM: Final = re.compile(rb"<(?:global_mem_size|global_RAM)>([^<]*+)<")
# Elements of preferences by which a volunteer keeps types of processors from this project.
_REFUSED: Final = re.compile(rb"<(no_gpus|no_cpu|no_cuda|no_ati|no_intel_gpu|no_apple_gpu)(?:\s*/>|>\s*1\s*<)")
_REFUSED_TYPES: Final = {
    b"no_cpu": (CPU,),
    b"no_cuda": ("NVIDIA",),
    b"no_ati": ("ATI",),
    b"no_intel_gpu": ("intel_gpu",),
    b"no_apple_gpu": ("apple_gpu",),
}
_STDERR_WRAPPING: Final = re.compile(r"<core_client_version>[^<]*</core_client_version>|<!\[CDATA\[|\]\]>")
_STDERR_TAGS: Final = re.compile(r"</?(?:message|stderr_txt)>")


def parse_request(body: bytes, *, is_cut: bool = False) -> SchedulerRequest:
    """Read a <scheduler_request>. Raises ProtocolError naming the field and the limit.

    ``is_cut``: this is only the beginning of a message that was too long. It is read up to its last whole result or
    trickle-up message, and taken as one that wants nothing. The client reports the other results once it has seen these
    acknowledged. It is different with trickle-up messages, see `_weigh_messages`.
    """
    scan = TagScanner(body, LIMITS)
    if scan.next() != _ROOT:
        raise ProtocolError("scheduler_request", "the message does not begin with this element")
    scan.enter()
    found: dict[bytes, bytes | None] = {}
    platforms: list[str] = []
    messages_at: int | None = None
    request = SchedulerRequest()
    while (tag := scan.next()) is not None:
        if tag in _SIMPLE:
            found.setdefault(tag, scan.element_text(tag))
        elif tag == b"result":
            read = _take if len(request.results) < MAX_RESULTS else _pass_over
            if not read(request, scan, is_cut) and is_cut:
                break  # nothing in it counts as part of the message: a program may have written it
        elif tag in _SECTIONS:
            found.setdefault(tag, scan.section(tag))
        elif tag == b"msg_from_host":
            messages_at = scan.start if messages_at is None else messages_at
            if not _add_message(request, scan, is_cut) and is_cut:
                break
        elif tag == b"app_version":
            if len(request.client_versions) < MAX_CLIENT_VERSIONS:
                request.client_versions.append(_client_version(scan.fields(tag, _END)))
            else:
                scan.section(tag)
        elif tag == b"alt_platform":
            platforms += [clip(name, 64) for name in _NAMES.findall(scan.element_text(tag))]
        elif tag == b"app_versions":
            scan.enter()
        elif tag == b"/scheduler_request":
            break
        elif not tag.startswith(b"/"):
            scan.skip(tag)
    if tag != b"/scheduler_request" and not (is_cut and (request.results or messages_at is not None)):
        raise ProtocolError("scheduler_request", "not closed: the message was cut off")
    request.alt_platforms = tuple(platforms[:MAX_PLATFORMS])
    request = _completed(request, found)
    if is_cut:
        request.sends_no_work, request.is_cut, request.other_results = True, True, None
        _weigh_messages(request, 0 if messages_at is None else len(body) - messages_at, len(body))
    return request


def _weigh_messages(request: SchedulerRequest, nbytes: int, nbytes_read: int) -> None:
    """Decide about the trickle-up messages of a request that was cut off, of which they fill ``nbytes``.

    A client sends all of them again, in the same order, until they are acknowledged, which it can only be for all at
    once. If the results before them fill most of what is read, they wait: the next request has more room. If not, the
    messages beyond would never be read, and the client would send them for ever: they are dropped.
    """
    if not nbytes or (request.results and 2 * nbytes < nbytes_read):
        request.trickles, request.has_unread_trickles = [], False
    else:
        request.has_unread_trickles = True


def authenticator_of(head: bytes) -> str:
    """The account key at the beginning of a message, empty if there is none. Raises ProtocolError as `parse_request`.

    So a long message is read only for somebody who is known. Clients write the key first.
    """
    scan = TagScanner(head, LIMITS)
    while (tag := scan.next()) is not None:
        if tag == b"authenticator":
            return as_text("authenticator", scan.element_text(tag), MAX_NAME)
        if tag in _SECTIONS or tag in (b"result", b"msg_from_host", b"app_version"):
            break
    return ""


def _completed(request: SchedulerRequest, found: dict[bytes, bytes | None]) -> SchedulerRequest:
    def raw(tag: bytes) -> bytes:
        return found.get(tag) or b""

    request.authenticator = as_text("authenticator", raw(b"authenticator"), MAX_NAME)
    request.hostid = _int(raw(b"hostid"), 0, 2**63 - 1) or 0
    request.rpc_seqno = _int(raw(b"rpc_seqno"), 0, 2**63 - 1) or 0
    request.client_version = ".".join(
        str(_int(raw(tag), 0, 999_999) or 0)
        for tag in (b"core_client_major_version", b"core_client_minor_version", b"core_client_release")
    )
    request.allows_multiple_clients = flag(found.get(b"allow_multiple_clients"))
    request.sends_no_work = flag(found.get(b"dont_send_work"))
    request.platform_name = clip(raw(b"platform_name"), 64)
    request.code_sign_key = clip(raw(b"code_sign_key")[:4096], 4096)
    request.cross_project_id = clip(raw(b"cross_project_id"), 32)
    request.duration_correction_factor = float_or_none(raw(b"duration_correction_factor"), 1e-6, 1e6) or 1.0
    _take_work_request(request, found)
    _take_what_is_rare(request, found)
    _take_preferences(request, raw(b"global_preferences"), raw(b"global_prefs_source_email_hash"))
    preferences = raw(b"working_global_preferences") + raw(b"global_preferences") + raw(b"project_preferences")
    request.refused_types = _refused_types(preferences, [gpu.type for gpu in request.gpus])
    limits = [
        percent
        for text in _RAM_LIMIT.findall(raw(b"working_global_preferences"))
        if (percent := float_or_none(text, 0, 100))
    ]
    request.ram_fraction = max(limits) / 100 if limits else 1.0
    request.time_stats = _numbers(raw(b"time_stats"), _MAX_SECS)
    request.available_fractions = (
        _fraction(request.time_stats.get("on_frac")),
        _fraction(request.time_stats.get("active_frac")),
        _fraction(request.time_stats.get("gpu_active_frac")),
    )
    net_stats = _numbers(raw(b"net_stats"), 1e12)
    request.net_stats = {name: number for name, number in net_stats.items() if name in _NET_STATS}
    request.disk_usage = _numbers(raw(b"disk_usage"), _MAX_BYTES)
    request.host = _host(raw(b"host_info"))
    if b"other_results" in found:
        names = _NAMES.findall(raw(b"other_results"))
        if len(names) <= MAX_OTHER_RESULTS:
            request.other_results = frozenset(clip(name, MAX_NAME) for name in names)
    return request


def _take_what_is_rare(request: SchedulerRequest, found: dict[bytes, bytes | None]) -> None:
    """What recent clients say of themselves, and what the volunteer's account manager had them forward."""
    refused = (("docker", b"dont_use_docker"), ("wsl", b"dont_use_wsl"))
    request.refused_containers = tuple(name for name, tag in refused if flag(found.get(tag)))
    request.client_brand = clip(found.get(b"client_brand") or b"", MAX_BRAND, entities=True)
    request.client_opaque = clip(_CDATA.sub(b"", (found.get(b"client_opaque") or b"")[: 8 * MAX_OPAQUE]), MAX_OPAQUE)
    if keywords := found.get(b"user_keywords"):
        named = [(found[1], int(found[2])) for found in islice(_KEYWORDS.finditer(keywords), 2 * MAX_KEYWORDS)]
        request.keywords_yes = frozenset(number for kind, number in named if kind == b"yes")
        request.keywords_no = frozenset(number for kind, number in named if kind == b"no")


def _take_preferences(request: SchedulerRequest, raw: bytes, email_hash: bytes) -> None:
    """The client's general preferences and when they were saved, by the site where they were."""
    if (found := _MOD_TIME.search(raw)) is not None:
        request.preferences_at = float_or_none(found[1], 0, _MAX_SECS) or 0.0
        request.preferences_raw = raw if len(raw) <= MAX_PREFERENCES else b""
        request.preferences_email_hash = clip(email_hash, 32)


def _refused_types(preferences: bytes, gpu_types: Sequence[str]) -> frozenset[str]:
    """The processor types that a volunteer's preferences refuse. ``gpu_types``: those that this computer has."""
    refused: set[str] = set()
    for tag in set(_REFUSED.findall(_without_venues(preferences))):
        refused.update(_REFUSED_TYPES.get(tag, gpu_types))
    return frozenset(refused)


def _without_venues(preferences: bytes) -> bytes:
    """The preferences that hold in all venues. Those of this computer's own venue are in the working preferences."""
    kept, at = [], 0
    while (begin := preferences.find(b"<venue", at)) >= 0 and (end := preferences.find(b"</venue>", begin)) >= 0:
        kept.append(preferences[at:begin])
        at = end
    return b"".join([*kept, preferences[at:]])


def _take_work_request(request: SchedulerRequest, found: dict[bytes, bytes | None]) -> None:
    """What work is wanted of which type, and the coprocessors that say so themselves.

    New-style if any of the tags is there, even with 0 (work fetch document, scheduler changes).
    """
    request.work_req_secs = float_or_none(found.get(b"work_req_seconds"), 0, _MAX_SECS) or 0.0
    delay_secs = float_or_none(found.get(b"estimated_delay"), 0, _MAX_SECS) or 0.0
    request.is_new_style = b"cpu_req_secs" in found or b"cpu_req_instances" in found
    request.work_requests[CPU] = WorkRequest(
        float_or_none(found.get(b"cpu_req_secs"), 0, _MAX_SECS) or 0.0,
        float_or_none(found.get(b"cpu_req_instances"), 0, 1e6) or 0.0,
        delay_secs,
    )
    request.coprocs_raw = found.get(b"coprocs") or b""
    gpus: dict[str, Gpu] = {}
    scan = TagScanner(request.coprocs_raw, LIMITS)
    while (tag := scan.next()) is not None and len(gpus) < MAX_GPU_TYPES:
        if tag not in COPROCESSORS:
            continue
        fields = dict(scan.fields(tag, _END))
        kind = COPROCESSORS[tag] or clip(fields.get(b"type", b""), 64)
        if b"req_secs" in fields or b"req_instances" in fields:
            request.is_new_style = True
        count = _int(fields.get(b"count"), 0, 1024) or 0
        if not kind or len(kind) > MAX_TYPE_NAME or kind == CPU or not count or kind in gpus:
            continue
        gpus[kind] = _gpu(kind, count, fields)
        request.work_requests[kind] = WorkRequest(
            float_or_none(fields.get(b"req_secs"), 0, _MAX_SECS) or 0.0,
            float_or_none(fields.get(b"req_instances"), 0, 1e6) or 0.0,
            float_or_none(fields.get(b"estimated_delay"), 0, _MAX_SECS) or 0.0,
        )
    request.gpus = tuple(gpus.values())
    if not request.is_new_style:
        request.work_requests = {CPU: WorkRequest(request.work_req_secs, 0.0, delay_secs)}


def _gpu(kind: str, count: int, fields: dict[bytes, bytes]) -> Gpu:
    opencl = fields.get(b"coproc_opencl", b"")
    found = _OPENCL_RAM.search(opencl)
    ram = float_or_none(fields.get(b"totalGlobalMem"), 0, _MAX_BYTES)
    if not ram and (megabytes := float_or_none(fields.get(b"localRAM"), 0, _MAX_BYTES / (1 << 20))):
        ram = megabytes * (1 << 20)
    if not ram and found:
        ram = float_or_none(found[1], 0, _MAX_BYTES)
    return Gpu(
        type=kind,
        count=count,
        peak_flops=float_or_none(fields.get(b"peak_flops"), 0, _MAX_FLOPS) or 0.0,
        ram_bytes=int(ram or 0),
        driver=_int(fields.get(b"drvVersion"), 0, _INT) or 0,
        capability=100 * (_int(fields.get(b"major"), 0, 1000) or 0) + (_int(fields.get(b"minor"), 0, 99) or 0),
        has_opencl=flag(fields.get(b"have_opencl")) or bool(opencl),
    )


@lru_cache(maxsize=256)
def _features(raw: bytes) -> frozenset[str]:
    """Kept, as it is a hundred names or more, and the same for all computers with this kind of processor."""
    return frozenset(clip(raw, MAX_FEATURES, entities=True).split())


def _host(raw: bytes) -> HostInfo:
    values: dict[bytes, bytes] = {}
    for name, text in _HOST.findall(raw):
        values.setdefault(name, text)

    def text_of(name: bytes, most: int) -> str:
        return clip(values.get(name, b""), most, entities=True)

    return HostInfo(
        host_cpid=text_of(b"host_cpid", 32),
        domain_name=text_of(b"domain_name", 255),
        os_name=text_of(b"os_name", 128),
        p_vendor=text_of(b"p_vendor", 128),
        p_model=text_of(b"p_model", 256),
        p_features=_features(values.get(b"p_features", b"")[:MAX_FEATURES]),
        ncpus=_int(values.get(b"p_ncpus"), 1, 65_535) or 1,
        p_fpops=float_or_none(values.get(b"p_fpops"), 0, _MAX_FLOPS) or 0.0,
        m_nbytes=float_or_none(values.get(b"m_nbytes"), 1, _MAX_BYTES),
        d_free=float_or_none(values.get(b"d_free"), 0, _MAX_BYTES),
        containers=parse_containers(raw),
        raw=raw,
    )


def _pass_over(request: SchedulerRequest, scan: TagScanner, _: bool) -> bool:
    """Note only the name of a <result>, as tens of thousands may have come together; False if it is not closed."""
    content, is_whole = _section_around(scan, b"result", b"stderr_out")
    named = _NAMES.search(content)
    request.unread_results.add(clip(named[1], MAX_NAME) if named else "")
    return is_whole


def _section_around(scan: TagScanner, name: bytes, inner: bytes) -> tuple[bytes, bool]:
    """Pass over the section just opened. What is in it but for ``inner``; whether it is closed.

    What a program wrote into ``inner`` may hold the section's closing tag too: the end comes behind it.
    """
    start = scan.pos
    content, rest = scan.section(name), b""
    is_whole, end = content is not None, scan.pos
    head, opened, _inner_and_more = (content or b"").partition(b"<%b>" % inner)
    if opened:
        scan.pos = start + len(head) + len(opened)
        if scan.section(inner) is None:
            scan.pos, is_whole = end, False
        else:
            found = scan.section(name)
            rest, is_whole = found or b"", found is not None
    return head + rest, is_whole


def _take(request: SchedulerRequest, scan: TagScanner, is_cut: bool) -> bool:
    """Read a <result>, whose stderr may hold anything but its section's closing tag; False if it is not closed."""
    values: dict[bytes, bytes] = {}
    files: list[ReportedFile] = []
    stderr: bytes | None = None
    while (tag := scan.next()) is not None and tag != b"/result":
        if tag == b"stderr_out":
            stderr = scan.section(tag)
            if stderr is None and is_cut:
                return False
        elif tag == b"file_info":
            fields = dict(scan.fields(tag, _END))
            if len(files) < MAX_FILES:
                files.append(_file(fields))
        elif tag[:1] != b"/":
            values.setdefault(tag, scan.element_text(tag))
    if tag is None:
        return False
    result = ReportedResult(clip(values.get(b"name", b""), MAX_NAME), files=tuple(files))
    result.stderr_text = _stderr(stderr)
    state, exit_status = values.get(b"state", b"0"), values.get(b"exit_status", b"0")
    result.state = _noted_int(result, "state", state, 0, 100)
    result.exit_status = _noted_int(result, "exit_status", exit_status, -(2**31), _INT)
    if result.exit_status > _INT:
        result.exit_status -= 2**32
    result.cpu_secs = _noted(result, "final_cpu_time", values, _MAX_SECS)
    result.elapsed_secs = _noted(result, "final_elapsed_time", values, _MAX_SECS)
    result.fpops_cumulative = _noted(result, "fpops_cumulative", values, _MAX_FLOP_COUNT)
    result.fpops_per_cpu_sec = _noted(result, "fpops_per_cpu_sec", values, _MAX_FLOPS)
    for column, name in (
        ("peak_working_set_bytes", "final_peak_working_set_size"),
        ("peak_swap_bytes", "final_peak_swap_size"),
        ("peak_disk_bytes", "final_peak_disk_usage"),
    ):
        nbytes = _noted(result, name, values, _MAX_BYTES)
        setattr(result, column, None if nbytes is None else int(nbytes))
    request.results.append(result)
    return True


def _noted_int(result: ReportedResult, name: str, raw: bytes, low: int, high: int) -> int:
    try:
        # Windows clients print exit codes of the system as unsigned.
        return as_int(name, raw, low, 2**32 - 1 if high == _INT else high)
    except ProtocolError as error:
        result.faults.append(f"{error.field} is {error.limit_or_reason}")
        return -1


def _noted(result: ReportedResult, name: str, values: dict[bytes, bytes], high: float) -> float | None:
    raw = values.get(name.encode())
    if raw is None:
        return None
    try:
        return as_float(name, raw, 0, high)
    except ProtocolError as error:
        result.faults.append(f"{error.field} is {error.limit_or_reason}")
        return None


def _file(fields: dict[bytes, bytes]) -> ReportedFile:
    nbytes = float_or_none(fields.get(b"nbytes"), 0, _MAX_BYTES)
    return ReportedFile(
        clip(fields.get(b"name", b""), MAX_NAME),
        None if nbytes is None else int(nbytes),
        clip(fields.get(b"md5_cksum", b""), 32).lower(),
        clip(fields.get(b"error_msg", b"")[:4096], 500, entities=True),
    )


def _stderr(raw: bytes | None) -> str:
    """The client's message and the program's stderr as one text, without the tags around them."""
    if not raw:
        return ""
    text = clip(raw, len(raw))
    text = _STDERR_TAGS.sub("", _STDERR_WRAPPING.sub("", text)).strip()
    return text[-MAX_STDERR:]


def _add_message(request: SchedulerRequest, scan: TagScanner, is_cut: bool) -> bool:
    """Read a <msg_from_host>, or pass over it if there are too many; False if it is not closed."""
    if len(request.trickles) >= MAX_MESSAGES:
        request.has_unread_trickles = True
        return _section_around(scan, b"msg_from_host", b"text")[1]
    values: dict[bytes, bytes] = {}
    while (tag := scan.next()) is not None and tag != b"/msg_from_host":
        if tag == b"text":
            text = scan.section(tag)
            if text is None and is_cut:
                return False
            values.setdefault(tag, text or b"")
        elif tag[:1] != b"/":
            values.setdefault(tag, scan.element_text(tag))
    if tag is None and is_cut:
        return False
    request.trickles.append(
        TrickleUp(
            clip(values.get(b"result_name", b""), MAX_NAME),
            float_or_none(values.get(b"time"), 0, 1e10) or 0.0,
            clip(values.get(b"variety", b""), 64),
            clip(values.get(b"text", b"")[: 4 * MAX_TRICKLE], MAX_TRICKLE),
        )
    )
    return tag is not None


_COPROC_TYPE: Final = re.compile(rb"<type>([^<]*+)<")
_COPROC_COUNT: Final = re.compile(rb"<count>([^<]*+)<")
_TYPE_NAMES: Final = {"CUDA": "NVIDIA", "nvidia": "NVIDIA"}


def _client_version(fields: Fields) -> ClientVersion:
    values = dict(fields)
    coproc = values.get(b"coproc", b"")
    kind, count = _COPROC_TYPE.search(coproc), _COPROC_COUNT.search(coproc)
    type_ = clip(kind[1], 64) if kind else ""
    return ClientVersion(
        app_name=clip(values.get(b"app_name", b""), MAX_NAME),
        version_num=_int(values.get(b"version_num"), 0, _INT) or 0,
        platform=clip(values.get(b"platform", b""), 64),
        plan_class=clip(values.get(b"plan_class", b""), 64),
        avg_ncpus=float_or_none(values.get(b"avg_ncpus"), 0, 1024) or 0.0,
        flops=float_or_none(values.get(b"flops"), 0, _MAX_FLOPS) or 0.0,
        gpu_type=_TYPE_NAMES.get(type_, type_),
        gpu_count=(float_or_none(count[1], 0, 64) or 0.0) if count else 0.0,
    )


def _int(raw: bytes | None, low: int, high: int) -> int | None:
    if not raw:
        return None
    try:
        return as_int("", raw, low, high)
    except ProtocolError:
        return None


def _numbers(raw: bytes, high: float) -> dict[str, float]:
    """The plain numbers of a section by name; -1 is what clients send for "unknown"."""
    numbers = {}
    for name, text in _NUMBERS.findall(raw, 0, 1 << 14):
        number = float_or_none(text, -1, high)
        if number is not None:
            numbers[name.decode("ascii", "replace")] = number
    return numbers


def _fraction(number: float | None) -> float:
    """A fraction of the time; an unknown one counts as 1, and one below 1 % as 1 %."""
    return 1.0 if number is None or number < 0 else min(max(number, 0.01), 1.0)
