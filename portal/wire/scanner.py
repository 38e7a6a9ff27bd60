"""Reads the tags of BOINC clients' messages, which look like XML but often are not.

Clients write project names, account keys and opaque text without escaping, copy preference files
verbatim and send bytes in any encoding (BOINC protocol, conventions). So a strict parser refuses real
requests, and a repairing parser changes them. This scanner finds tags by name as the client itself does,
returns the bytes between them unaltered, and has hard limits. Pure: bytes in, bytes and numbers out.

Its running time is linear in the length of the body: no pattern can backtrack, the next closing tag of a name is
searched for once, and a message with many tags that are never closed is refused.

Rules where a message is not well-formed:

* The text of an element goes to its first closing tag. If there is none, or if the same tag opens again
  before it, the element was never closed: it ends at the end of the line or at the next "<".
* Closing tags that close nothing, stray text, attributes and comments are skipped.
* `<x/>` and `<x></x>` are the same, and both are true as booleans.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import nan
from typing import Final

from portal.languages.messages import VERBATIM, Message, at_place
from portal.wire.boinc_errors import ERR_XML_PARSE

Fields = list[tuple[bytes, bytes]]
"""(name, text) of an element's children in the order sent."""

_TAG = re.compile(rb"<(/?+[A-Za-z_][\w.:-]*+)([^<>]*+)>(?:([^<]*+)</\1>)?|<!--|<!\[CDATA\[")
_ANY_TAG = re.compile(rb"<(/?+)[A-Za-z_][^<>]*+>")
# Either a child with plain text and the white space after it, or something else (no group).
_FIELD = re.compile(rb"<([A-Za-z_]\w*+)(?:/>|>([^<]*+)</\1>)\s*+|.[^<]*+", re.DOTALL)
_NO_FIELD: Final = (b"", b"")
_UNTIL_TAG_OR_LINE_END = re.compile(rb"[^<\r\n]*+")
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d{1,7}));")
_ENTITIES: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_INTEGER = re.compile(rb"([+-]?\d{1,19})(?:\.0*+)?")
_SLASH: Final = ord("/")
LEAST_NUMBER: Final = 1e-9
"""No time, size or speed is closer to 0, so products of stored numbers fit into the database."""


class ProtocolError(Exception):
    """A message that cannot be read: the field, the fault or the limit, and BOINC's error number.

    A reason that pages show is a message; one that only clients see is English text, as all of those are.
    """

    def __init__(self, field: str, reason: Message | str, error_num: int = ERR_XML_PARSE) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason if isinstance(reason, Message) else Message(VERBATIM, text=reason)
        self.error_num = error_num

    def __str__(self) -> str:
        return str(self.message)

    @property
    def message(self) -> Message:
        return at_place(self.field, self.reason)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a message is accepted; beyond it the scanner raises ProtocolError."""

    body_bytes: int = 1 << 20
    depth: int = 32
    elements: int = 20_000
    text_bytes: int = 1 << 16
    unclosed: int = 100


DEFAULT_LIMITS: Final = Limits()


class TagScanner:
    """A cursor over a message: `next` goes to the next tag, the other methods read or skip its element.

    After `next`, `text` is the element's text when nothing but text is inside it, and None otherwise.
    """

    __slots__ = ("_closers", "_tag", "_unclosed", "data", "elements", "limits", "pos", "text")

    def __init__(self, data: bytes, limits: Limits = DEFAULT_LIMITS) -> None:
        if len(data) > limits.body_bytes:
            raise ProtocolError("body", Message("message_body_limit", limit=str(limits.body_bytes)))
        self.data = data
        self.limits = limits
        self.pos = 0
        self._tag: re.Match[bytes] | None = None
        self.text: bytes | None = None
        self.elements = 0
        self._unclosed = 0
        self._closers: dict[bytes, int] = {}

    def next(self) -> bytes | None:
        """Return the next tag's name, with a leading "/" for a closing tag; None at the end.

        The cursor is then behind the whole element if it holds only text, else behind the tag.
        """
        while (match := _TAG.search(self.data, self.pos)) is not None:
            name: bytes | None
            name, attributes, text = match.groups()
            self.elements += 1
            if self.elements > self.limits.elements:
                raise self._too_many()
            self.pos = match.end()
            if name is None:
                self._pass_over_comment(match[0])
                continue
            self._tag = match
            if attributes and attributes[-1] == _SLASH:
                text = b""
                self.pos = match.end(2) + 1
            self.text = text
            return name
        self.pos = len(self.data)
        return None

    @property
    def start(self) -> int:
        """Where the tag that `next` found begins; 0 before the first."""
        return 0 if self._tag is None else self._tag.start()

    def enter(self) -> None:
        """Go on inside the element just opened, even if it holds only text."""
        if self._tag is not None:
            self.pos = self._tag.end(2) + 1
        self.text = None

    def row(self, pattern: re.Pattern[bytes]) -> Fields:
        """Return the next elements as (name, text), as long as the pattern (made by `row_of`) contains their names.

        Like `next` and `element_text` for each, in a third of the time.
        """
        match = pattern.match(self.data, self.pos)
        assert match is not None  # the pattern matches an empty row too
        start, self.pos = match.span(1)
        fields: Fields = _FIELD.findall(self.data, start, self.pos)
        self.count(len(fields))
        if self.pos - start > self.limits.text_bytes:
            for name, text in fields:
                if len(text) > self.limits.text_bytes:
                    raise self._too_long(name)
        return fields

    def take(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Match plain elements in a known order at the cursor and move behind them; None if they do not match."""
        match = pattern.match(self.data, self.pos)
        if match is None or match.end() - match.start() > self.limits.text_bytes:
            return None
        self.count(self.data.count(b"</", self.pos, match.end()))
        self.pos = match.end()
        return match

    def element_text(self, name: bytes) -> bytes:
        """Return the bytes inside the element just opened, tags included; ProtocolError for too many."""
        if self.text is not None:
            if len(self.text) > self.limits.text_bytes:
                raise self._too_long(name)
            return self.text
        start = self.pos
        end = self._closer(name)
        if end < 0 or self.data.find(b"<" + name + b">", start, end) >= 0:
            self._note_unclosed(name)
            unclosed = _UNTIL_TAG_OR_LINE_END.match(self.data, start)
            assert unclosed is not None  # the pattern matches an empty text too
            self.pos = unclosed.end()
            return unclosed[0]
        if end - start > self.limits.text_bytes:
            raise self._too_long(name)
        self.pos = end + len(name) + 3
        return self.data[start:end]

    def section(self, name: bytes) -> bytes | None:
        """Return the bytes of a whole section up to its closing tag, found by one search; None without one.

        For sections that are stored raw, read later or not at all: nothing in them is examined, and only the limit of
        the body limits their size.
        """
        if self.text is not None:
            return self.text
        end = self._closer(name)
        if end < 0:
            self._note_unclosed(name)
            return None
        content = self.data[self.pos : end]
        self.pos = end + len(name) + 3
        return content

    def skip(self, name: bytes) -> None:
        """Skip an unknown element, counting what is in it."""
        if self.text is not None:
            return
        end = self._closer(name)
        if end < 0:
            self._note_unclosed(name)
            return
        depth = 1
        for match in _ANY_TAG.finditer(self.data, self.pos, end):
            self.count(1)
            if match[1]:
                depth -= 1
            elif self.data[match.end() - 2] != _SLASH:
                depth += 1
                if depth > self.limits.depth:
                    raise ProtocolError(_name(name), Message("message_depth_limit", limit=self.limits.depth))
        self.pos = end + len(name) + 3

    def fields(self, name: bytes, siblings: frozenset[bytes]) -> Fields:
        """Return the children of the element just opened as (name, text).

        A tag of `siblings` (with a leading "/" for closing ones) cannot be a child: it ends an element whose
        closing tag is missing.
        """
        if self.text is not None:
            return []
        data, start = self.data, self.pos
        end = self._closer(name)
        if 0 <= end - start <= self.limits.text_bytes:
            fields: Fields = _FIELD.findall(data, data.find(b"<", start, end + 1), end)
            if _NO_FIELD not in fields:
                self.count(len(fields))
                self.pos = end + len(name) + 3
                return fields
        return self._fields_one_by_one(name, siblings)

    def _fields_one_by_one(self, name: bytes, siblings: frozenset[bytes]) -> Fields:
        fields: Fields = []
        while (tag := self.next()) is not None:
            if tag[0] == _SLASH and tag[1:] == name:
                return fields
            if tag == name or tag in siblings:
                self._note_unclosed(name)
                assert self._tag is not None  # `next` has just found it
                self.pos = self._tag.start()
                return fields
            if tag[0] != _SLASH:
                fields.append((tag, self.element_text(tag)))
        return fields

    def count(self, elements: int) -> None:
        """Add to the number of elements seen; raise ProtocolError when it passes the limit."""
        self.elements += elements
        if self.elements > self.limits.elements:
            raise self._too_many()

    def _closer(self, name: bytes) -> int:
        """The position of the first closing tag of that name at or after the cursor; -1 if there is none.

        It is remembered, so that a message full of unclosed tags costs one search per name.
        """
        at = self._closers.get(name, -2)
        if at == -1 or at >= self.pos:
            return at
        at = self.data.find(b"</" + name + b">", self.pos)
        self._closers[name] = at
        return at

    def _pass_over_comment(self, opening: bytes) -> None:
        closing = b"-->" if opening == b"<!--" else b"]]>"
        at = self._closers.get(closing, -2)
        if at != -1 and at < self.pos:
            at = self.data.find(closing, self.pos)
            self._closers[closing] = at
        if at >= 0:
            self.pos = at + 3

    def _note_unclosed(self, name: bytes) -> None:
        self._unclosed += 1
        if self._unclosed > self.limits.unclosed:
            raise ProtocolError(_name(name), Message("message_unclosed_limit", limit=self.limits.unclosed))

    def _too_many(self) -> ProtocolError:
        return ProtocolError("elements", Message("more_than", limit=str(self.limits.elements)))

    def _too_long(self, name: bytes) -> ProtocolError:
        return ProtocolError(_name(name), Message("field_bytes_limit", limit=str(self.limits.text_bytes)))


def row_of(names: Iterable[bytes]) -> re.Pattern[bytes]:
    """A pattern for `TagScanner.row`: elements of these names, one after the other, with nothing but text in them."""
    # Not "*+": in Python 3.11.2 (Debian 12), a possessive repeat of a pattern with a group matches too little.
    return re.compile(rb"\s*+((?:<(%b)>[^<]*+</\2>\s*+)*)" % b"|".join(sorted(names)))


def _name(tag: bytes) -> str:
    return tag[:64].decode("latin-1")


def decode(raw: bytes, *, entities: bool = False) -> str:
    """Return bytes as text: UTF-8, or else Latin-1, in which every byte is valid. Never fails.

    White space around the text is dropped, as in the client. NUL becomes U+FFFD, because neither XML nor a
    database's text can contain NUL. With `entities`, `&lt; &gt; &amp; &quot; &apos; &#N;` are decoded, once.
    """
    raw = raw.strip()
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    if entities and "&" in text:
        text = _ENTITY.sub(_decode_entity, text)
    return text.replace("\0", "\ufffd") if "\0" in text else text


def _decode_entity(match: re.Match[str]) -> str:
    if match[1]:
        return _ENTITIES[match[1]]
    number = int(match[2])
    is_character = number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_character else match[0]


def clip(raw: bytes, max_len: int, *, entities: bool = False) -> str:
    """Return decoded text, cut to max_len characters: for text that is only shown or compared."""
    return decode(raw, entities=entities)[:max_len]


def as_text(field: str, raw: bytes, max_len: int, *, entities: bool = False) -> str:
    """Return decoded text; raise ProtocolError when it is longer than max_len characters."""
    text = decode(raw, entities=entities)
    if len(text) > max_len:
        raise ProtocolError(field, Message("field_chars_limit", limit=str(max_len)))
    return text


def as_int(field: str, raw: bytes, low: int, high: int) -> int:
    """Return an integer from low to high, or raise ProtocolError. "3.000000" is an integer too."""
    if raw.isdigit() and len(raw) < 20:
        number = int(raw)
        if low <= number <= high:
            return number
    match = _INTEGER.fullmatch(raw.strip())
    if match is not None and low <= (number := int(match[1])) <= high:
        return number
    raise ProtocolError(field, Message("field_no_integer", low=str(low), high=str(high)))


def as_float(field: str, raw: bytes, low: float, high: float) -> float:
    """Return a decimal number from low to high, both finite, or raise ProtocolError (nan, inf, hex, 1e400 …).

    One closer to 0 than ``LEAST_NUMBER`` is 0.
    """
    try:
        number = float(raw)
    except ValueError:
        number = nan
    if -LEAST_NUMBER < number < LEAST_NUMBER:
        number = 0.0
    # nan is in no range; underscores between digits are Python's own.
    if low <= number <= high and b"_" not in raw:
        return number
    raise ProtocolError(field, Message("field_no_number", low=f"{low:g}", high=f"{high:g}"))


def float_or_none(raw: bytes | None, low: float, high: float) -> float | None:
    """Return a decimal number, None if it is absent or out of range."""
    if not raw:
        return None
    try:
        return as_float("", raw, low, high)
    except ProtocolError:
        return None


def flag(raw: bytes | None) -> bool:
    """Return a boolean; anything else counts as false."""
    if raw is None or raw == b"0":
        return False
    return raw.strip() in (b"", b"1")


def as_bool(field: str, raw: bytes) -> bool:
    """Return True for an empty text (`<x/>`) or a nonzero integer, False for 0, or raise ProtocolError."""
    raw = raw.strip()
    if raw in (b"", b"1"):
        return True
    return raw != b"0" and as_int(field, raw, -(2**31), 2**31 - 1) != 0
