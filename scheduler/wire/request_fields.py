"""Shared by all parts of reading a scheduler request: limits, names, numbers. Pure."""

from __future__ import annotations

import re
from typing import Final

from portal.wire.scanner import Limits, ProtocolError, as_int, float_or_none

LIMITS: Final = Limits(body_bytes=16 << 20, elements=200_000, text_bytes=1 << 18)
MAX_NAME: Final = 255
MAX_SECS: Final = 1e11
MAX_FLOPS: Final = 1e18
MAX_BYTES: Final = 1e18
MAX_INT: Final = 2**31 - 1
END: Final = frozenset({b"/scheduler_request", b"host_info", b"result", b"app_versions", b"other_results"})
NAMES: Final = re.compile(rb"<name>([^<]*+)</name>")
_NUMBERS: Final = re.compile(rb"<(\w{1,40}+)>([-+0-9.eE]{1,32})</\1>")


def int_or_none(raw: bytes | None, low: int, high: int) -> int | None:
    if not raw:
        return None
    try:
        return as_int("", raw, low, high)
    except ProtocolError:
        return None


def numbers(raw: bytes, high: float) -> dict[str, float]:
    """Return the plain numbers of a section by name; clients send -1 for "unknown"."""
    values = {}
    for name, text in _NUMBERS.findall(raw, 0, 1 << 14):
        number = float_or_none(text, -1, high)
        if number is not None:
            values[name.decode("ascii", "replace")] = number
    return values


def fraction(number: float | None) -> float:
    """Return a fraction of the time; an unknown one counts as 1, and one below 1 % as 1 %."""
    return 1.0 if number is None or number < 0 else min(max(number, 0.01), 1.0)
