"""The time that all machines of a site agree on, whatever their own clocks say: that of the primary.

A process with several database hosts learns it from the primary (`portal.databases.watch`), and counts on from there by
a clock that nobody sets. With one host it is the machine's own.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Final

from django.utils import timezone

SLOW_SECS: Final = 0.5
"""An answer that took longer says too little about when it was given."""

# Unix time of the primary when this process's monotonic clock was 0.
_zero_at: float | None = None


def now() -> dt.datetime:
    """The time for whatever other machines will read: when something is due, until when it is somebody's."""
    zero_at = _zero_at
    if zero_at is None:
        return timezone.now()
    return dt.datetime.fromtimestamp(zero_at + time.monotonic(), dt.UTC)


def learn(primary_at: dt.datetime, asked_at: float, answered_at: float) -> None:
    """The primary's time, and between which times of the monotonic clock it was that."""
    global _zero_at
    if _zero_at is None or answered_at - asked_at < SLOW_SECS:
        _zero_at = primary_at.timestamp() - (asked_at + answered_at) / 2


def forget() -> None:
    """Go by the machine's own clock."""
    global _zero_at
    _zero_at = None


def as_local(moment: dt.datetime) -> dt.datetime:
    """The same moment by the machine's own clock, for libraries that compare it with that."""
    return moment + (timezone.now() - now())
