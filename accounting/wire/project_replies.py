"""Projects' replies to anyone who has an account there: lookup_account.php and create_account.php, am_get_info.php,
show_user.php, and the scheduler. Pure.

Source: BOINC protocol, web RPCs, scheduler request and reply. Raises ProtocolError for other documents, ProjectRefused
for a project's refusal, with its number and words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from portal.languages.messages import Message
from portal.wire.scanner import Limits, ProtocolError, TagScanner, as_int, clip, float_or_none

LIMITS: Final = Limits(body_bytes=1 << 20, elements=20_000, text_bytes=1 << 18)
MAX_KEY: Final = 255
MAX_TEXT: Final = 300
MAX_MESSAGES: Final = 10
MAX_SCHEDULERS: Final = 10
MAX_CREDIT: Final = 9e12
"""A greater total does not fit into the column of micro-credits."""

_KEY: Final = re.compile(r"[!-~]{1,255}")
_SCHEDULER: Final = re.compile(
    rb"<scheduler>\s*+([^<>\s]{1,255})\s*+</scheduler>|<link\s+rel=[\"']boinc_scheduler[\"']\s+href=[\"']([^\"'<>\s]{1,255})"
)
# The first of each name counts.
_KEPT: Final = frozenset(
    {
        b"authenticator", b"error_num", b"error_msg", b"error_string", b"error", b"success", b"id", b"name",
        b"country", b"weak_auth", b"userid", b"hostid", b"user_name", b"project_name", b"code_sign_key",
        b"total_credit", b"expavg_credit",
    }
)  # fmt: skip
_ROOTS: Final = frozenset({b"account_out", b"am_get_info_reply", b"scheduler_reply", b"user", b"error"})


class ProjectRefused(Exception):
    """The project refused. ``str``: its words, or the meaning of BOINC's number."""

    def __init__(self, error_num: int, words: str) -> None:
        super().__init__(words or _MEANINGS.get(error_num, "no reason was given"))
        self.error_num = error_num


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """An account as its project describes it. ``weak_key``: a key that can work and change nothing; empty: unknown."""

    id: int
    name: str
    country: str
    weak_key: str


@dataclass(frozen=True, slots=True)
class SchedulerAnswer:
    """A scheduler's answer. ``hostid``: the number that it gave the computer, 0 for none. ``code_key``: SHA-256 of the
    key that programs are signed with, empty if it was not sent.
    """

    project_name: str
    user_name: str
    hostid: int
    messages: tuple[str, ...]
    code_key: str = ""


_MEANINGS: Final = {
    -137: "there is an account with this address and another password",
    -136: "there is no such account",
    -155: "the account key is not valid",
    -183: "the project is down for now",
    -205: "this e-mail address is not accepted",
    -206: "the password is wrong",
    -207: "there is an account with this address and another password",
    -208: "the project creates no accounts by this way",
    -242: "its terms have to be accepted",
}


def parse_account_out(data: bytes) -> str:
    """Parse the account key in a reply of lookup_account.php. Raises ProjectRefused, ProtocolError."""
    fields = _fields(data, b"account_out")
    key = clip(fields.get(b"authenticator", b""), MAX_KEY + 1)
    if not _KEY.fullmatch(key):
        raise ProtocolError("authenticator", Message("answer_no_key", limit=MAX_KEY))
    return key


def parse_account_info(data: bytes) -> AccountInfo:
    """Parse the account in a reply of am_get_info.php. Raises ProjectRefused, ProtocolError."""
    fields = _fields(data, b"am_get_info_reply")
    weak = clip(fields.get(b"weak_auth", b""), MAX_KEY + 1)
    return AccountInfo(
        _number(fields.get(b"id", b"")),
        _decoded(fields.get(b"name", b"")),
        _decoded(fields.get(b"country", b"")),
        weak if _KEY.fullmatch(weak) else "",
    )


def parse_account_credit(data: bytes) -> tuple[float, float] | None:
    """Parse total and recent average (credits a day) in a reply of show_user.php; None if they are not valid numbers.

    Raises ProjectRefused, ProtocolError.
    """
    fields = _fields(data, b"user")
    total = float_or_none(fields.get(b"total_credit"), 0, MAX_CREDIT)
    average = float_or_none(fields.get(b"expavg_credit"), 0, MAX_CREDIT)
    return None if total is None else (total, average or 0.0)


def _decoded(raw: bytes) -> str:
    """Decode percent-encoded text; without NUL, like all other text (`decode`)."""
    return unquote_plus(clip(raw, MAX_TEXT)).replace("\0", "\ufffd")


def scheduler_urls(page: bytes) -> list[str]:
    """Return the addresses of schedulers that a master page names."""
    urls = [(old or new).decode("latin-1").strip() for old, new in _SCHEDULER.findall(page)]
    return list(dict.fromkeys(urls))[:MAX_SCHEDULERS]


def parse_scheduler_answer(data: bytes) -> SchedulerAnswer:
    """Parse a scheduler's reply to a request that wants no jobs. Raises ProtocolError."""
    fields = _fields(data, b"scheduler_reply", refuses=False)
    messages = [clip(text, MAX_TEXT, entities=True) for text in _messages(data)]
    return SchedulerAnswer(
        clip(fields.get(b"project_name", b""), MAX_TEXT, entities=True),
        clip(fields.get(b"user_name", b""), MAX_TEXT, entities=True),
        _number(fields.get(b"hostid", b"")),
        tuple(message for message in messages[:MAX_MESSAGES] if message),
        _digest(fields.get(b"code_sign_key", b"")),
    )


def _digest(key: bytes) -> str:
    """Return a digest that ignores differences in line endings."""
    text = b"".join(key.split())
    return hashlib.sha256(text).hexdigest() if text else ""


def scheduler_request(account_key: str, cross_project_id: str, domain_name: str) -> bytes:
    """Build a request for no jobs, by a computer that has none. The same id is the same computer to the project."""
    lines = {
        "authenticator": account_key,
        "hostid": "0",
        "rpc_seqno": "0",
        "core_client_major_version": "8",
        "core_client_minor_version": "0",
        "core_client_release": "0",
        "platform_name": "x86_64-pc-linux-gnu",
        "dont_send_work": "1",
        "work_req_seconds": "0",
        "cross_project_id": cross_project_id,
    }
    body = "".join(f"    <{name}>{escape(text)}</{name}>\n" for name, text in lines.items())
    host = f"    <host_info>\n        <domain_name>{escape(domain_name)}</domain_name>\n        <p_ncpus>1</p_ncpus>\n"
    host += f"        <host_cpid>{cross_project_id}</host_cpid>\n        <os_name>Linux</os_name>\n    </host_info>\n"
    return f"<scheduler_request>\n{body}{host}</scheduler_request>\n".encode()


def _fields(data: bytes, root: bytes, *, refuses: bool = True) -> dict[bytes, bytes]:
    """Parse the elements that are used. Raises ProjectRefused for an error, ProtocolError if this is another
    document.
    """
    scanner = TagScanner(data, LIMITS)
    fields: dict[bytes, bytes] = {}
    roots = set()
    while (tag := scanner.next()) is not None:
        if tag in _ROOTS and scanner.text is None:
            roots.add(tag)
        elif tag in _KEPT:
            fields.setdefault(tag, scanner.element_text(tag))
        elif not tag.startswith(b"/"):
            scanner.skip(tag)
    if not roots & {root, b"error"} and b"error_num" not in fields:
        raise ProtocolError("answer", Message("answer_no_boinc"))
    words = next((fields[name] for name in (b"error_msg", b"error_string", b"error") if name in fields), None)
    error_num = _number(fields.get(b"error_num", b""))
    if refuses and (error_num or words is not None or b"error" in roots):
        raise ProjectRefused(error_num, clip(words or b"", MAX_TEXT, entities=True))
    return fields


def _messages(data: bytes) -> Iterator[bytes]:
    scanner = TagScanner(data, LIMITS)
    while (tag := scanner.next()) is not None:
        if tag == b"message":
            yield scanner.element_text(tag)


def _number(raw: bytes) -> int:
    try:
        return as_int("", raw, -(2**31), 2**31 - 1)
    except ProtocolError:
        return 0
