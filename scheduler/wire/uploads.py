"""The messages of file uploads (BOINC protocol, files): a head of tags, then the file's bytes. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from portal.clients.effects import ReadBody
from portal.wire.scanner import Limits, ProtocolError, TagScanner, as_int, as_text
from scheduler.engine.limits import MAX_FILE_NBYTES, MAX_FORMER_NAME_CHARS

MAX_HEAD_NBYTES: Final = 16 * 1024
_PIECE_NBYTES: Final = 4096
_DATA: Final = b"<data>\n"
_LIMITS: Final = Limits(body_bytes=MAX_HEAD_NBYTES, elements=100, text_bytes=4096)
# Elements that are parsed; of all others the text is taken.
_CONTAINERS: Final = frozenset({b"data_server_request", b"file_upload", b"file_info"})
_MD5: Final = re.compile(r"[0-9a-f]{32}")

DONE: Final = 0
TRY_AGAIN: Final = 1
REFUSED: Final = -1


@dataclass(frozen=True, slots=True)
class SizeQuery:
    """Asks how much of this file is here already."""

    name: str


@dataclass(frozen=True, slots=True)
class FileUpload:
    """An upload: the bytes of a file from ``offset`` to its end follow; ``nbytes`` and ``md5`` are those of the whole
    file.
    """

    name: str
    certificate: str
    max_nbytes: int
    nbytes: int
    md5: str
    offset: int


class Head(NamedTuple):
    """The head of a message.

    ``text``: without its <data> mark; ``nbytes``: with it; ``start``: the bytes read after it.
    """

    text: bytes
    nbytes: int
    start: bytes


async def read_head() -> Head:
    """Read the head; a message without the mark is only a head. Raises ProtocolError if it exceeds MAX_HEAD_NBYTES."""
    start = b""
    while len(start) < MAX_HEAD_NBYTES:
        piece = await ReadBody(_PIECE_NBYTES)
        start += piece
        text, mark, data = start.partition(_DATA)
        if mark or not piece:
            return Head(text, len(text) + len(mark), data)
    raise ProtocolError("data", f"does not begin within {MAX_HEAD_NBYTES} bytes")


def parse_head(head: bytes) -> SizeQuery | FileUpload:
    """Parse the request. Raises ProtocolError, which names the field."""
    fields: dict[bytes, bytes] = {}
    scanner = TagScanner(head, _LIMITS)
    while (tag := scanner.next()) is not None:
        if tag in _CONTAINERS:
            scanner.enter()
        elif tag[:1] != b"/":
            fields.setdefault(tag, scanner.element_text(tag))
    if b"get_file_size" in fields:
        return SizeQuery(_name(fields, b"get_file_size"))
    md5 = as_text("md5_cksum", _field(fields, b"md5_cksum"), 32).lower()
    if not _MD5.fullmatch(md5):
        raise ProtocolError("md5_cksum", "not 32 hexadecimal digits")
    nbytes = as_int("nbytes", _field(fields, b"nbytes"), 0, MAX_FILE_NBYTES)
    return FileUpload(
        name=_name(fields, b"name"),
        certificate=as_text("xml_signature", fields.get(b"xml_signature", b""), 4096),
        max_nbytes=as_int("max_nbytes", _field(fields, b"max_nbytes"), 0, MAX_FILE_NBYTES),
        nbytes=nbytes,
        md5=md5,
        offset=as_int("offset", fields.get(b"offset", b"0"), 0, nbytes),
    )


def _field(fields: dict[bytes, bytes], name: bytes) -> bytes:
    if name not in fields:
        raise ProtocolError(name.decode(), "missing")
    return fields[name]


def _name(fields: dict[bytes, bytes], tag: bytes) -> str:
    name = as_text(tag.decode(), _field(fields, tag), MAX_FORMER_NAME_CHARS)
    if not name:
        raise ProtocolError(tag.decode(), "empty")
    return name


def render_reply(status: int, message: str = "", file_size_nbytes: int | None = None) -> str:
    """Render a reply. ``status``: DONE, TRY_AGAIN (the client retries later) or REFUSED (it gives up)."""
    lines = ["<data_server_reply>", f"    <status>{status}</status>"]
    if message:
        lines.append(f"    <message>{escape(message)}</message>")
    if file_size_nbytes is not None:
        lines.append(f"    <file_size>{file_size_nbytes}</file_size>")
    return "\n".join([*lines, "</data_server_reply>", ""])
