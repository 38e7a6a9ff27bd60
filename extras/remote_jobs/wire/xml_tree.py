"""Parse XML from strangers into elements with their line numbers. Pure.

Well-formed XML only, without a document type, so no entity expands. Its size is limited, and a missing child is
reported with the element and its line.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

MAX_NBYTES: Final = 16 * 1024 * 1024
MAX_ELEMENTS: Final = 500_000
MAX_DEPTH: Final = 20
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")
_TRUE: Final = ("", "1")
_FALSE: Final = ("0",)


_LAST_SECS: Final = dt.datetime(9999, 1, 1, tzinfo=dt.UTC).timestamp()


class XmlError(Exception):
    """Unreadable XML; the message names line and limit, or element and line."""


@dataclass(slots=True)
class Element:
    """An element: its text without that of its children, and its children in order."""

    tag: str
    line: int
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()

    @property
    def verbatim(self) -> str:
        """The text including surrounding white space."""
        return "".join(self.pieces)

    def all(self, tag: str) -> Iterator[Element]:
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> Element | None:
        """Return the first child with that name."""
        return next(self.all(tag), None)

    def text_of(self, tag: str) -> str:
        """Return the text of a child; empty without one."""
        child = self.first(tag)
        return child.text if child is not None else ""

    def flag(self, tag: str) -> bool:
        """Whether there is a child ``<tag/>`` or ``<tag>1</tag>``."""
        child = self.first(tag)
        if child is None or child.text in _FALSE:
            return False
        if child.text not in _TRUE:
            raise child.wrong("neither 1 nor 0")
        return True

    def number(self, tag: str) -> float:
        """Return the number in a child; 0 without one."""
        child = self.first(tag)
        if child is None or not child.text:
            return 0.0
        try:
            number = float(child.text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or not child.text.isascii():
            raise child.wrong("not a number")
        return number

    def integer(self, tag: str) -> int:
        """Return the whole number in a child, within the range of a database column; 0 without one."""
        child = self.first(tag)
        if child is None or not child.text:
            return 0
        if _INTEGER.fullmatch(child.text) is None:
            raise child.wrong("not a whole number")
        return int(child.text.partition(".")[0])

    def time(self, tag: str) -> dt.datetime | None:
        """Return the time in a child, in seconds since 1970; None without one, and for 0."""
        secs = self.number(tag)
        if secs < 0:
            raise XmlError(f"{tag} below 0")
        return dt.datetime.fromtimestamp(min(secs, _LAST_SECS), dt.UTC) if secs else None

    def wrong(self, reason: str) -> XmlError:
        return XmlError(f"<{self.tag}> in line {self.line}: {reason}")


def parse(text: str | bytes) -> Element:
    """Parse a document and return its root. Raises XmlError."""
    raw = text.encode() if isinstance(text, str) else text
    if len(raw) > MAX_NBYTES:
        raise XmlError(f"{len(raw)} bytes; the limit is {MAX_NBYTES}")
    builder = _Builder()
    # The bytes decide, whatever a declaration says: clients declare an encoding and send another.
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartDoctypeDeclHandler = builder.doctype
    parser.buffer_text = True
    builder.parser = parser
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise XmlError(f"line {error.lineno}: {expat.ErrorString(error.code)}") from error
    assert builder.root is not None  # expat finds no document without one
    return builder.root


class _Builder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self.parser: expat.XMLParserType
        self._open: list[Element] = []
        self._count = 0

    def start(self, tag: str, _attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise XmlError(f"more than {MAX_ELEMENTS} elements")
        if len(self._open) == MAX_DEPTH:
            raise XmlError(f"line {self.parser.CurrentLineNumber}: nested deeper than {MAX_DEPTH} levels")
        element = Element(tag, self.parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def end(self, _tag: str) -> None:
        self._open.pop()

    def characters(self, text: str) -> None:
        self._open[-1].pieces.append(text)

    def doctype(self, *_: object) -> None:
        raise XmlError(f"line {self.parser.CurrentLineNumber}: a document type is not taken")
