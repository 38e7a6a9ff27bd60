"""Codes of certificates, as they are printed and typed. Pure."""

from __future__ import annotations

from typing import Final
from unicodedata import category

MAX_CODE_CHARS: Final = 300
"""Length of an entered code: with blanks and dashes, or the whole address of a check."""
CODE_LENGTH: Final = 16
ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""The alphabet of codes: Crockford's base 32, without letters that look like digits."""
_LOOK_ALIKE: Final = str.maketrans("OIL", "011")
_MINUS: Final = "\u2212"


def read_code(text: str) -> str | None:
    """Parse a code as printed or typed, or at the end of an address, to its plain form; None if it cannot be one."""
    if len(text) > MAX_CODE_CHARS:
        return None
    last = text.strip().rstrip("/").rpartition("/")[2]
    code = "".join(char for char in last.upper() if not _is_between(char)).translate(_LOOK_ALIKE)
    return code if len(code) == CODE_LENGTH and set(code) <= set(ALPHABET) else None


def _is_between(char: str) -> bool:
    """Whether it is a blank or dash of any kind."""
    return char.isspace() or char == _MINUS or category(char) == "Pd"


def grouped_code(code: str) -> str:
    """Format a code as it is printed, in groups of four: 7KQ4-9XMZ-…"""
    return "-".join(code[place : place + 4] for place in range(0, len(code), 4))
