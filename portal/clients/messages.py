"""A client's request and its reply, independent of server and driver. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from portal.clients.paths import ClientPath
from portal.wire.boinc_errors import ERR_GENERIC, ERR_XML_PARSE

XML_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" ?>\n'
TRY_LATER: Final = "The server failed to answer this request. Please try again in a few minutes."
BUSY: Final = "The server is too busy just now. Please try again in a few minutes."
NO_DATABASE: Final = "The server's database cannot be reached just now. Nothing is lost; your client will try again."
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client's request.

    ``body`` is the part that was read, at most the path's limit, and empty if it comes as a stream. ``length`` is the
    announced length. ``query``: the raw query string. ``address``: the client's, as text, or empty.
    """

    method: str
    path: str
    query: str
    body: bytes
    length: int
    address: str

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning of the body was read."""
        return len(self.body) < self.length


@dataclass(frozen=True, slots=True)
class ClientReply:
    """A reply to a client. ``error_num``: BOINC's, for log and counters; 0 for success."""

    body: bytes
    error_num: int = 0
    status: int = 200
    content_type: str = "text/xml; charset=utf-8"
    headers: Sequence[tuple[str, str]] = ()


def xml_reply(text: bytes | str, error_num: int = 0) -> ClientReply:
    return ClientReply(text if isinstance(text, bytes) else text.encode(), error_num)


def refusal(root: str, error_num: int, message: str, status: int = 200, **headers: str) -> ClientReply:
    """A refusal, or the report of a failure, in the element that the protocol expects: BOINC's error number, and a
    sentence that clients show.
    """
    words = _text(message)
    body = f"<error_num>{error_num}</error_num>\n<error_msg>{words}</error_msg>\n"
    if root == "scheduler_reply":
        # Clients accept no error numbers here; this makes them back off, longer each time.
        body = f'<project_is_down/>\n<message priority="low">{words}</message>\n'
    elif root == "data_server_reply":
        body = f"<status>{1 if status == 200 else -1}</status>\n<message>{words}</message>\n"
    return ClientReply(f"<{root}>\n{body}</{root}>\n".encode(), error_num, status, headers=tuple(headers.items()))


def refused_by_head(route: ClientPath, method: str, length: int, *, is_chunked: bool) -> ClientReply | None:
    """The refusal of a request that no BOINC client sends, before its body is read; None for a proper request."""
    if method == "GET" and not route.is_stream:
        return None
    if method != "POST":
        methods = "POST" if route.is_stream else "GET, POST"
        words = methods.replace(", ", " or ")
        return refusal(route.root, ERR_GENERIC, f"Use {words}.", 405, Allow=methods)
    if is_chunked:
        return refusal(route.root, ERR_GENERIC, "Send the request with a Content-Length, not in chunks.", 411)
    if not route.is_stream and length > max(route.body_bytes, route.longest_bytes):
        return too_long(route)
    return None


def too_long(route: ClientPath) -> ClientReply:
    limit = max(route.body_bytes, route.longest_bytes)
    return refusal(route.root, ERR_XML_PARSE, f"The request is longer than the limit of {limit} bytes.")


def cut_off(route: ClientPath) -> ClientReply:
    message = "The request ended before its Content-Length. Please send it again."
    return refusal(route.root, ERR_GENERIC, message, 400)


def too_slow(route: ClientPath) -> ClientReply:
    return refusal(route.root, ERR_GENERIC, "The request came too slowly. Please send it again.", 408)


def document(root: str, elements: Mapping[str, str | int | bool | None]) -> str:
    """One level of XML as BOINC clients read it: True is an empty element, None and False are left out."""
    lines = [_element(name, value) for name, value in elements.items() if value is not None and value is not False]
    return f"{XML_HEAD}<{root}>\n{''.join(lines)}</{root}>\n"


def _element(name: str, value: str | int | bool) -> str:
    if value is True:
        return f"    <{name}/>\n"
    return f"    <{name}>{_text(str(value))}</{name}>\n"


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("", text))
