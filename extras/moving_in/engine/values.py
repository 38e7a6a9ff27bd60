"""Numbers and times of old databases: 0 stands for unknown, and anything may be out of any range."""

from __future__ import annotations

import math
from typing import Final

FIRST_SECS: Final = 946_684_800.0
"""The year 2000: no BOINC project is older."""


class BrokenRow(Exception):
    """This row cannot be taken; the reason is one that several rows share, without their numbers."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def finite(value: object, low: float, high: float) -> float | None:
    """The number, if it is one in this range."""
    if not isinstance(value, int | float) or not math.isfinite(value) or not low <= value <= high:
        return None
    return float(value)


def whole(value: object, low: int, high: int) -> int | None:
    number = finite(value, low, high)
    return None if number is None else int(number)


def secs(value: object, now: float) -> float | None:
    """Unix seconds of something that has been, if it can have been then."""
    return finite(value, FIRST_SECS, now + 86_400)
