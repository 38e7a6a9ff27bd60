"""Texts of old databases, whose columns often have other bytes than they say.

PHP and BOINC's server wrote UTF-8 into columns of latin1, and such tables were converted to UTF-8 later, so that their
texts are UTF-8 twice ("Ã©" for "é").
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

_HOLES: Final = {chr(code): bytes([code]) for code in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}
"""MySQL's latin1 is cp1252, with these codes as they are."""
_CERTAIN_SEQUENCES: Final = 3


class Repair(Enum):
    """What was done to a text; the value is what an operator reads."""

    NONE = ""
    FROM_CP1252 = "not UTF-8, read as Windows-1252"
    UNDOUBLED = "was UTF-8 twice, repaired"
    MAYBE_DOUBLED = "perhaps UTF-8 twice, left as it is"


class Text(NamedTuple):
    """A text as it is kept, and what was done to it."""

    text: str
    repair: Repair


def read(raw: bytes) -> Text:
    """The text that these bytes are, without NUL, which PostgreSQL has no place for.

    Bytes that are UTF-8 are taken as such, others as cp1252. A text that is UTF-8 twice is repaired where that is
    certain: all that is not ASCII belongs to such pairs, and these are Western letters, or several.
    """
    raw = raw.replace(b"\0", b"")
    if raw.isascii():
        return Text(raw.decode("ascii"), Repair.NONE)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Text(_from_cp1252(raw), Repair.FROM_CP1252)
    inner = _inner(text)
    if inner is None:
        return Text(text, Repair.NONE)
    sequences = [character for character in inner if ord(character) > 0x7F]
    is_certain = all(ord(each) <= 0xFF for each in sequences) or len(sequences) >= _CERTAIN_SEQUENCES
    return Text(inner, Repair.UNDOUBLED) if is_certain else Text(text, Repair.MAYBE_DOUBLED)


def storable(text: str) -> str:
    """The text without what PostgreSQL has no place for, which JSON can have: NUL, and halves of pairs of UTF-16."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _from_cp1252(raw: bytes) -> str:
    return "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in raw)


def _inner(text: str) -> str | None:
    """What the text's characters are as bytes of cp1252, if these are UTF-8."""
    try:
        return b"".join(_HOLES.get(each) or each.encode("cp1252") for each in text).decode()
    except UnicodeError:
        return None
