"""The account-manager request as a client sends it (BOINC protocol, AM RPC request), read into dataclasses. Pure.

Replies are in accounting/wire/replies.py, hardware is in portal/wire/hardware.py.

Nothing in a single project's part can fail the whole RPC: invalid totals become its `fault`, and other invalid values
become the default. ProtocolError is for messages beyond the hard limits, messages that were cut off, and credentials
that no client could have.

If an element comes twice, the first one counts at the top level, as credentials come before anything copied verbatim.
Inside a project the last one counts, except for <url>, as the project's own name comes after it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, cast

from accounting.engine.amounts import JOB_KINDS, KINDS, Totals, parse_amount, parse_count
from accounting.engine.states import Unreadable
from accounting.wire.client_tasks import ReportedTasks, parse_tasks
from portal.languages.messages import Message, MessageError
from portal.wire.hardware import Hardware, free_disk, hardware_digest, parse_hardware
from portal.wire.names import cleaned
from portal.wire.scanner import Fields, ProtocolError, TagScanner, as_int, as_text, clip, flag, float_or_none, row_of

MAX_PROJECTS: Final = 800
"""A request with more is refused as a whole, and its client told so: none of it is lost. BOINC lists about 30."""
MAX_NO_WORK: Final = 32
MAX_OPAQUE: Final = 1024
"""Characters stored of <opaque>; the client's own buffer has 256 bytes."""
MAX_URL: Final = 255

REPORTS_CREDIT_SINCE: Final = (7, 7, 1)
"""The first version of BOINC's client that reports totals; the first released one is 7.8."""

_ROOT: Final = b"acct_mgr_request"
_TEXTS: Final = frozenset(
    {
        b"name", b"password_hash", b"authenticator", b"host_cpid", b"previous_host_cpid", b"domain_name",
        b"client_version", b"run_mode", b"platform_name",
    }
)  # fmt: skip
_ROW_OF_TEXTS: Final = row_of(_TEXTS)
_SECTIONS: Final = frozenset(
    {
        b"working_global_preferences", b"global_preferences", b"host_info", b"opaque", b"time_stats",
        b"net_stats", b"results",
    }
)  # fmt: skip
# Tags that cannot be inside a project: they end one that was never closed.
_NOT_IN_PROJECT: Final = _SECTIONS | {b"/" + _ROOT}
# The tags of a project, in the order in which clients print them; not all clients print those after the share.
_PRINTED_KINDS: Final = ("cpu_ec", "cpu_time", "gpu_ec", "gpu_time", "njobs_success", "njobs_error")
_PROJECT_TAGS: Final = (
    b"url", b"project_name", b"suspended_via_gui", b"hostid", b"not_started_dur", b"in_progress_dur",
    b"attached_via_acct_mgr", b"dont_request_more_work", b"detach_when_done", b"ended", b"resource_share",
    b"nrpc_failures", *(kind.encode() for kind in _PRINTED_KINDS),
)  # fmt: skip


def _printed(tags: Iterable[bytes]) -> bytes:
    """Return a pattern of consecutive elements that contain only text; a group for each text."""
    return b"".join([rb"<%b>([^<]*+)</%b>\s*+" % (tag, tag) for tag in tags])


# No "?+" or "*+" behind a group (`portal.wire.scanner.row_of`).
_PRINTED_PROJECT = re.compile(
    rb"\s*+<project>\s*+"
    + _printed(_PROJECT_TAGS[:11])
    + rb"<disk_usage>[^<]*+</disk_usage>\s*+<disk_share>[^<]*+</disk_share>\s*+"
    + rb"(?:%b)?" % _printed(_PROJECT_TAGS[11:])
    + rb"((?:<sched_req_no_work>[^<]*+</sched_req_no_work>\s*+)*)"
    + rb"(?:%b)?</project>" % _printed([b"account_key"])
)
_NO_WORK_TEXT = re.compile(rb"<sched_req_no_work>([^<]*+)<")

_HOST_TOKEN = re.compile(rb"<host>\s*+([0-9a-fA-F]{32,64})\s*+</host>")
# The number that Science United gives a computer
_HOST_NUMBER = re.compile(rb"<host_id>\s*+(\d{1,18})\s*+</host_id>")
_NOW = re.compile(rb"<now>([^<]*+)</now>")
_ALT_PLATFORM_NAME = re.compile(rb"<name>([^<]*+)</name>")
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", re.ASCII)
_NUMBER = re.compile(rb"<(\w++)>([0-9.eE+-]{1,32}+)</\1>")
_TIME_STATS: Final = {
    name.encode(): name
    for name in (
        "on_frac", "connected_frac", "cpu_and_network_available_frac", "active_frac", "gpu_active_frac",
        "client_start_time", "total_start_time", "total_duration", "total_active_duration",
        "total_gpu_active_duration", "now", "previous_uptime", "session_active_duration",
        "session_gpu_active_duration",
    )
}  # fmt: skip
# The other averages are meaningless on fast networks.
_NET_STATS: Final = {b"bwup": "bwup", b"bwdown": "bwdown"}
_MAX_SECS: Final = 1e11
# How clients print a sum containing nan or infinity, which then stays; Windows clients use other words.
_NOT_FINITE: Final = re.compile(rb"[+-]?(?:nan(?:\([a-z]*\))?|inf(?:inity)?|1\.#\w+)", re.IGNORECASE)
_MAX_BYTES_PER_SEC: Final = 1e12
_MAX_STATS: Final = 1 << 14
"""Bytes of a statistics section that are parsed; a client's has under 1,000."""


@dataclass(slots=True)
class ReportedProject:
    """One <project> of the request: a project that the client is attached to, by us or otherwise.

    `totals` is None when the client sent none (it does not know yet that we are dynamic) or sent unusable ones; in the
    second case `fault`, a packed message, says which and why. If only some are unusable, `unreadable` lists them, and
    they are 0. Durations in seconds.
    """

    url: str
    project_name: str = ""
    hostid: int = 0
    resource_share: float | None = None
    attached_via_acct_mgr: bool = False
    suspended_via_gui: bool = False
    dont_request_more_work: bool = False
    detach_when_done: bool = False
    ended: bool = False
    not_started_dur: float = 0.0
    in_progress_dur: float = 0.0
    nrpc_failures: int = 0
    account_key: str = ""
    no_work: tuple[str, ...] = ()
    totals: Totals | None = None
    fault: str | None = None
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(slots=True)
class AccountManagerRequest:
    """An account-manager request. Texts are as sent, without surrounding white space; missing ones are empty.

    hardware_digest: 16 bytes, equal as long as the hardware is; b"" when the client sent no <host_info>. tasks: None
    when the client sent no <results>: it was not asked for its tasks, or is too old. client_now: the client's clock,
    Unix seconds. host_number: in place of host_token, the computer's number at the account manager that moved in here.
    """

    name: str = ""
    password_hash: str = ""
    authenticator: str = ""
    host_cpid: str = ""
    previous_host_cpid: str = ""
    domain_name: str = ""
    client_version: str = ""
    run_mode: str = ""
    platform_name: str = ""
    alt_platforms: tuple[str, ...] = ()
    projects: list[ReportedProject] = field(default_factory=list)
    opaque: str = ""
    host_token: str | None = None
    host_number: int | None = None
    client_now: float | None = None
    hardware_digest: bytes = b""
    host_info: bytes = b""
    time_stats: bytes = b""
    net_stats: bytes = b""
    tasks: ReportedTasks | None = None

    @property
    def version_tuple(self) -> tuple[int, int, int]:
        """Return the client's version as numbers; (0, 0, 0) if it is not of the form a.b.c."""
        return _version_tuple(self.client_version)

    @property
    def reports_credit(self) -> bool:
        """Whether the client can report its work: it is new enough and, once it has had a reply, sends totals.

        Before the first reply, which announces that this site takes totals, no client sends any.
        """
        if (0, 0, 0) < self.version_tuple < REPORTS_CREDIT_SINCE:
            return False
        has_had_reply = (self.host_token or self.host_number) is not None and bool(self.projects)
        return not has_had_reply or any(project.totals is not None or project.fault for project in self.projects)

    def hardware(self) -> Hardware | None:
        """Parse <host_info>: costly, so only when the digest differs from the stored one. None if missing."""
        return parse_hardware(self.host_info) if self.host_info else None

    def contact(self) -> dict[str, object]:
        """Return the values that change at every contact, for storing as JSON: run mode, free disk, time and net
        statistics.

        In bytes, seconds and bytes/s. Values that are not finite numbers of a sane size are left out. Includes a flag
        if the client cannot report credit.
        """
        return ({} if self.reports_credit else {"reports_credit": False}) | {
            "run_mode": self.run_mode,
            "d_free": float_or_none(free_disk(self.host_info), 0, 1e18),
            "time_stats": _numbers(_TIME_STATS, self.time_stats, _MAX_SECS),
            "net_stats": _numbers(_NET_STATS, self.net_stats, _MAX_BYTES_PER_SEC),
        }


@lru_cache(maxsize=256)
def _version_tuple(version: str) -> tuple[int, int, int]:
    match = _VERSION.match(version)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


def parse_request(body: bytes) -> AccountManagerRequest:
    """Parse an <acct_mgr_request>. Raises ProtocolError naming the field and the limit.

    Of a message beyond the limit the site reads the beginning: it may end within the list of tasks.
    """
    scan = TagScanner(body)
    is_shortened = len(body) == scan.limits.body_bytes
    if scan.next() != _ROOT:
        raise ProtocolError("acct_mgr_request", "the message does not begin with this element")
    scan.enter()
    # Credentials and the like come one after the other. The first of two counts.
    texts: dict[bytes, bytes | None] = dict(reversed(scan.row(_ROW_OF_TEXTS)))
    platforms: list[str] = []
    projects = _printed_projects(scan, MAX_PROJECTS)
    while (tag := scan.next()) is not None:
        if tag in _TEXTS:
            texts.setdefault(tag, scan.element_text(tag))
        elif tag == b"project":
            if len(projects) == MAX_PROJECTS:
                raise ProtocolError("project", f"more than {MAX_PROJECTS} projects")
            projects.append(_project(scan.fields(b"project", _NOT_IN_PROJECT)))
        elif tag in _SECTIONS:
            if tag == b"results" and is_shortened and scan.text is None and body.find(b"</results>", scan.pos) < 0:
                # The last element and everything before it have arrived.
                texts.setdefault(tag, body[scan.pos :])
                return _request(texts, tuple(platforms[:MAX_NO_WORK]), projects)
            texts.setdefault(tag, scan.section(tag))
        elif tag == b"alt_platform":
            platforms += [clip(name, 64) for name in _ALT_PLATFORM_NAME.findall(scan.element_text(tag))]
            # Clients with a second platform print it just before the projects.
            projects += _printed_projects(scan, MAX_PROJECTS - len(projects))
        elif tag == b"/acct_mgr_request":
            return _request(texts, tuple(platforms[:MAX_NO_WORK]), projects)
        elif not tag.startswith(b"/"):
            scan.skip(tag)
    if is_shortened:
        raise ProtocolError("body", f"larger than {scan.limits.body_bytes} bytes")
    raise ProtocolError("acct_mgr_request", "not closed: the message was cut off")


def credentials_of(head: bytes) -> AccountManagerRequest:
    """Return a request of which only the credentials at the beginning of a message were read. Raises ProtocolError.

    So a long message is read only for a known account. Clients write their credentials first.
    """
    scan = TagScanner(head)
    if scan.next() != _ROOT:
        raise ProtocolError("acct_mgr_request", "the message does not begin with this element")
    scan.enter()
    texts: dict[bytes, bytes | None] = dict(reversed(scan.row(_ROW_OF_TEXTS)))
    while (tag := scan.next()) is not None and tag != b"project" and tag not in _SECTIONS:
        if tag in _TEXTS:
            texts.setdefault(tag, scan.element_text(tag))
    return _request(texts, (), [])


def _request(
    texts: dict[bytes, bytes | None],
    platforms: tuple[str, ...],
    projects: list[ReportedProject],
) -> AccountManagerRequest:
    def raw(tag: bytes) -> bytes:
        return texts.get(tag) or b""

    opaque = raw(b"opaque")
    token = _HOST_TOKEN.search(opaque, 0, MAX_OPAQUE) if opaque else None
    number = _HOST_NUMBER.search(opaque, 0, MAX_OPAQUE) if opaque and not token else None
    now = _NOW.search(raw(b"time_stats"))
    return AccountManagerRequest(
        name=as_text("name", raw(b"name"), 255),
        password_hash=as_text("password_hash", raw(b"password_hash"), 255),
        authenticator=as_text("authenticator", raw(b"authenticator"), 255),
        host_cpid=clip(raw(b"host_cpid"), 32),
        previous_host_cpid=clip(raw(b"previous_host_cpid"), 32),
        domain_name=cleaned(clip(raw(b"domain_name"), 255)),
        client_version=clip(raw(b"client_version"), 32),
        run_mode=clip(raw(b"run_mode"), 16),
        platform_name=clip(raw(b"platform_name"), 64),
        alt_platforms=platforms,
        projects=projects,
        opaque=clip(opaque[: 4 * MAX_OPAQUE], MAX_OPAQUE),
        host_token=token[1].decode() if token else None,
        host_number=int(number[1]) if number else None,
        client_now=float_or_none(now[1], 0, _MAX_SECS) if now else None,
        hardware_digest=hardware_digest(raw(b"host_info")),
        host_info=raw(b"host_info"),
        time_stats=raw(b"time_stats"),
        net_stats=raw(b"net_stats"),
        tasks=parse_tasks(texts[b"results"] or b"") if b"results" in texts else None,
    )


def _printed_projects(scan: TagScanner, most: int) -> list[ReportedProject]:
    """Parse the following projects, as long as they are exactly as clients print them; much cheaper than field by
    field.
    """
    projects: list[ReportedProject] = []
    while len(projects) < most and (match := scan.take(_PRINTED_PROJECT)) is not None:
        *texts, no_work, account_key = match.groups()
        projects.append(_reported(texts, account_key, _NO_WORK_TEXT.findall(no_work) if no_work else ()))
    return projects


def _project(fields: Fields) -> ReportedProject:
    values = dict(fields)
    get = values.get
    if fields and fields[0][0] == b"url":
        values[b"url"] = fields[0][1]
    no_work = [text for tag, text in fields if tag == b"sched_req_no_work"]
    return _reported([get(tag) for tag in _PROJECT_TAGS], get(b"account_key"), no_work)


def _reported(texts: Sequence[bytes | None], account_key: bytes | None, no_work: Sequence[bytes]) -> ReportedProject:
    """Build a project from the texts of _PROJECT_TAGS, in that order; None for a tag that was not sent."""
    url, name, suspended, hostid, not_started, in_progress, managed, no_new, detach, ended, share, failures = texts[:12]
    totals, fault, unreadable = _totals(texts[12:])
    return ReportedProject(
        # One more than the longest URL, so that a cut one is still recognised as too long.
        url=clip(url or b"", 2 * MAX_URL),
        project_name=cleaned(clip(name or b"", 255)),
        hostid=_int(hostid, 0, 2**31 - 1),
        resource_share=float_or_none(share, 0, 1e12),
        attached_via_acct_mgr=flag(managed),
        suspended_via_gui=flag(suspended),
        dont_request_more_work=flag(no_new),
        detach_when_done=flag(detach),
        ended=flag(ended),
        not_started_dur=float_or_none(not_started, 0, _MAX_SECS) or 0.0,
        in_progress_dur=float_or_none(in_progress, 0, _MAX_SECS) or 0.0,
        nrpc_failures=_int(failures, 0, 2**31 - 1),
        account_key=clip(account_key or b"", 255),
        no_work=_no_work(no_work) if no_work else (),
        totals=totals,
        fault=fault,
        unreadable=unreadable,
    )


def _totals(six: Sequence[bytes | None]) -> tuple[Totals | None, str | None, tuple[Unreadable, ...]]:
    """Return the six totals, or None and why they are unusable; (None, None) when none was sent.

    The third value lists the unusable totals, if others are usable.
    """
    if None not in six:
        cpu_ec, cpu_time, gpu_ec, gpu_time, success, error = cast("Sequence[bytes]", six)
        try:
            return (
                Totals(
                    parse_amount(cpu_ec),
                    parse_amount(gpu_ec),
                    parse_amount(cpu_time),
                    parse_amount(gpu_time),
                    parse_count(success),
                    parse_count(error),
                ),
                None,
                (),
            )
        except ValueError:
            pass
    texts = dict(zip(_PRINTED_KINDS, six, strict=True))
    if all(text is None for text in six):
        return None, None, ()
    amounts = dict.fromkeys(KINDS, 0)
    unreadable = []
    for kind in KINDS:
        text = texts[kind]
        try:
            if text is not None:
                amounts[kind] = parse_count(text) if kind in JOB_KINDS else parse_amount(text)
                continue
            fault = Message("total_missing", kind=kind)
        except ValueError:
            code = "total_no_count" if kind in JOB_KINDS else "total_no_amount"
            fault = Message(code, kind=kind)
        # Jobs are whole numbers in clients, too, and never become nan or infinity.
        is_lasting = text is not None and kind not in JOB_KINDS and _NOT_FINITE.fullmatch(text.strip()) is not None
        unreadable.append(Unreadable(kind, fault.packed(), is_lasting))
    if len(unreadable) == len(KINDS):
        return None, unreadable[0].fault, ()
    return Totals(**amounts), None, tuple(unreadable)


def _no_work(texts: Sequence[bytes]) -> tuple[str, ...]:
    """Return the resources without work, each once; at most MAX_NO_WORK of at most 64 characters."""
    return tuple(dict.fromkeys(filter(None, [clip(text, 64) for text in texts])))[:MAX_NO_WORK]


def _int(raw: bytes | None, low: int, high: int) -> int:
    """Parse an integer, 0 if it is missing or out of range."""
    if not raw or raw == b"0":
        return 0
    try:
        return as_int("", raw, low, high)
    except ProtocolError:
        return 0


def _numbers(names: Mapping[bytes, str], raw: bytes, high: float) -> dict[str, float]:
    """Return name -> number for each element of these names whose value is a number from -1 (unknown) to high."""
    numbers = {}
    for tag, text in _NUMBER.findall(raw, 0, _MAX_STATS):
        if tag in names and (number := float_or_none(text, -1, high)) is not None:
            numbers[names[tag]] = number
    return numbers


class URLError(MessageError, ValueError):
    """No client would attach to this URL; the text says why."""


def canonical_url(url: str) -> str:
    """Return a master URL as clients store it (BOINC protocol, conventions): scheme and host in lower case, doubled
    slashes made single, with a slash at the end.

    Raises URLError, saying what is wrong, for a URL that no client would attach to.
    """
    scheme, separator, rest = url.strip().partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in ("http", "https"):
        raise URLError(Message("url_scheme"))
    if not rest.isprintable() or any(character in rest for character in " <>"):
        raise URLError(Message("url_characters"))
    while "//" in rest:
        rest = rest.replace("//", "/")
    host, _, path = rest.partition("/")
    # Programs disagree where the host of such an address ends, and a key would go to another server than is shown.
    if "\\" in rest or any(character in host for character in "@?#"):
        raise URLError(Message("url_host_characters"))
    canonical = f"{scheme}://{host.lower()}/{path}"
    if not canonical.endswith("/"):
        canonical += "/"
    after_scheme = canonical[len(scheme) + 3 :]
    dot = after_scheme.find(".")
    if not host or dot < 1 or after_scheme[dot + 1] == "/":
        raise URLError(Message("url_host"))
    if len(canonical.encode()) > MAX_URL:
        raise URLError(Message("url_bytes_limit", limit=MAX_URL))
    return canonical
