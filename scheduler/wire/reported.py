"""The results and trickle-up messages in a scheduler request. Pure."""

from __future__ import annotations

import re
from typing import Final

from credit.engine.rules import MIN_ELAPSED_SECS
from portal.languages.messages import Message
from portal.wire.scanner import ProtocolError, TagScanner, as_float, as_int, clip, float_or_none
from scheduler.engine.request import ReportedFile, ReportedResult, SchedulerRequest, TrickleUp
from scheduler.wire.request_fields import END, MAX_BYTES, MAX_FLOPS, MAX_INT, MAX_NAME, MAX_SECS, NAMES

MAX_FILES: Final = 100
MAX_MESSAGES: Final = 5000
"""There is a single acknowledgement for all of them, so few clients may really have more."""
MAX_STDERR: Final = 1 << 16
"""The length in characters of a job's stored stderr: its end, which says what went wrong."""
MAX_TRICKLE: Final = 1 << 16
_MAX_FLOP_COUNT: Final = 1e25
_STDERR_WRAPPING: Final = re.compile(r"<core_client_version>[^<]*</core_client_version>|<!\[CDATA\[|\]\]>")
_STDERR_TAGS: Final = re.compile(r"</?(?:message|stderr_txt)>")


def take_result(request: SchedulerRequest, scan: TagScanner, is_cut: bool) -> bool:
    """Read a <result>, whose stderr may contain anything but its section's closing tag; False if it is not closed."""
    values: dict[bytes, bytes] = {}
    files: list[ReportedFile] = []
    stderr: bytes | None = None
    while (tag := scan.next()) is not None and tag != b"/result":
        if tag == b"stderr_out":
            stderr = scan.section(tag)
            if stderr is None and is_cut:
                return False
        elif tag == b"file_info":
            fields = dict(scan.fields(tag, END))
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
    result.exit_status = _noted_int(result, "exit_status", exit_status, -(2**31), MAX_INT)
    if result.exit_status > MAX_INT:
        result.exit_status -= 2**32
    result.cpu_secs = _run_time(_noted(result, "final_cpu_time", values, MAX_SECS))
    result.elapsed_secs = _run_time(_noted(result, "final_elapsed_time", values, MAX_SECS))
    result.fpops_cumulative = _noted(result, "fpops_cumulative", values, _MAX_FLOP_COUNT)
    result.fpops_per_cpu_sec = _noted(result, "fpops_per_cpu_sec", values, MAX_FLOPS)
    for column, name in (
        ("peak_working_set_bytes", "final_peak_working_set_size"),
        ("peak_swap_bytes", "final_peak_swap_size"),
        ("peak_disk_bytes", "final_peak_disk_usage"),
    ):
        nbytes = _noted(result, name, values, MAX_BYTES)
        setattr(result, column, None if nbytes is None else int(nbytes))
    request.results.append(result)
    return True


def pass_over_result(request: SchedulerRequest, scan: TagScanner, _: bool) -> bool:
    """Record only the name of a <result>, because tens of thousands may come at once; False if it is not closed."""
    content, is_whole = _section_around(scan, b"result", b"stderr_out")
    named = NAMES.search(content)
    request.unread_results.add(clip(named[1], MAX_NAME) if named else "")
    return is_whole


def _section_around(scan: TagScanner, name: bytes, inner: bytes) -> tuple[bytes, bool]:
    """Skip the section just opened. Return its content without ``inner``, and whether it is closed.

    The program's text in ``inner`` may contain the section's closing tag too: the end comes after it.
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
            section = scan.section(name)
            rest, is_whole = section or b"", section is not None
    return head + rest, is_whole


def _noted_int(result: ReportedResult, name: str, raw: bytes, low: int, high: int) -> int:
    try:
        # Windows clients write the system's exit codes as unsigned.
        return as_int(name, raw, low, 2**32 - 1 if high == MAX_INT else high)
    except ProtocolError as error:
        result.faults.append(Message("reported_no_integer", field=error.field, low=low, high=high))
        return -1


def _noted(result: ReportedResult, name: str, values: dict[bytes, bytes], high: float) -> float | None:
    raw = values.get(name.encode())
    if raw is None:
        return None
    try:
        return as_float(name, raw, 0, high)
    except ProtocolError as error:
        result.faults.append(Message("reported_no_number", field=error.field, low=0, high=float(high)))
        return None


def _run_time(secs: float | None) -> float | None:
    """Return a run time; one that is too short counts as none."""
    return 0.0 if secs is not None and secs < MIN_ELAPSED_SECS else secs


def _file(fields: dict[bytes, bytes]) -> ReportedFile:
    nbytes = float_or_none(fields.get(b"nbytes"), 0, MAX_BYTES)
    return ReportedFile(
        clip(fields.get(b"name", b""), MAX_NAME),
        None if nbytes is None else int(nbytes),
        clip(fields.get(b"md5_cksum", b""), 32).lower(),
        clip(fields.get(b"error_msg", b"")[:4096], 500, entities=True),
        clip(fields.get(b"upload_url", b"").partition(b"?")[2], 32),
    )


def _stderr(raw: bytes | None) -> str:
    """Return the client's message and the program's stderr as one text, without the tags around them."""
    if not raw:
        return ""
    text = clip(raw, len(raw))
    text = _STDERR_TAGS.sub("", _STDERR_WRAPPING.sub("", text)).strip()
    return text[-MAX_STDERR:]


def take_message(request: SchedulerRequest, scan: TagScanner, is_cut: bool) -> bool:
    """Read a <msg_from_host>, or skip it if there are too many; False if it is not closed."""
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


def weigh_messages(request: SchedulerRequest, nbytes: int, nbytes_read: int) -> None:
    """Decide about the trickle-up messages, of ``nbytes`` in total, in a request that was cut off.

    A client sends all of them again, in the same order, until they are acknowledged, which is only possible for all at
    once. If the results before them fill most of what is read, they wait: the next request has more room. If not, the
    messages beyond would never be read, and the client would send them for ever: they are dropped.
    """
    if not nbytes or (request.results and 2 * nbytes < nbytes_read):
        request.trickles, request.has_unread_trickles = [], False
    else:
        request.has_unread_trickles = True
