"""Facts about the owner that no file has: how much the computer is used, and the time of the week.

A client measures the fraction of the time in which it may compute. That includes everything that stopped it: hours,
use, battery and exclusive applications. So use is assumed only where nothing was measured, and hours are taken out of
the measurement. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from emulator.engine.scenario import DAY_SECS, WEEK_SECS, Availability, Host, Preferences, Use
from portal.languages.messages import Message

IN_USE: Final = Use(0.25, 3600.0)
ON_BATTERIES: Final = Use(0.2, 3 * 3600.0)
EXCLUSIVE: Final = Use(0.1, 2 * 3600.0)
_EPOCH_WEEKDAY: Final = 4  # 1 January 1970 was a Thursday; 0 is Sunday


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Whether the client has exclusive applications: any, and any for GPUs."""

    apps: bool = False
    gpu_apps: bool = False


NOTHING_EXCLUSIVE: Final = Exclusive()


def with_use(host: Host, preferences: Preferences, exclusive: Exclusive, note: Callable[[Message], None]) -> Host:
    """Add assumed use to the computer where the client measured nothing, with notes."""
    if not preferences.run_if_user_active:
        note(Message("assumed_in_use", hours=_hours(IN_USE), length_hours=_length(IN_USE)))
        host = replace(host, in_use=IN_USE)
    elif not preferences.run_gpu_if_user_active and len(host.processors) > 1:
        note(Message("assumed_gpu_in_use", hours=_hours(IN_USE), length_hours=_length(IN_USE)))
        host = replace(host, in_use=IN_USE)
    if not preferences.run_on_batteries:
        note(Message("assumed_on_battery", hours=_hours(ON_BATTERIES), length_hours=_length(ON_BATTERIES)))
        host = replace(host, on_batteries=ON_BATTERIES)
    if exclusive.apps:
        note(Message("assumed_exclusive", hours=_hours(EXCLUSIVE), length_hours=_length(EXCLUSIVE)))
        host = replace(host, exclusive_app=EXCLUSIVE)
    if exclusive.gpu_apps:
        note(Message("assumed_gpu_exclusive", hours=_hours(EXCLUSIVE), length_hours=_length(EXCLUSIVE)))
        host = replace(host, exclusive_gpu_app=EXCLUSIVE)
    return host


def _hours(use: Use) -> float:
    return 24 * use.fraction


def _length(use: Use) -> float:
    return use.mean_secs / 3600


def without_hours(host: Host, preferences: Preferences, note: Callable[[Message], None]) -> Host:
    """Reduce the computer's measured fractions by the part that the hours in the preferences explain."""
    spans = preferences.compute_hours.spans_secs()
    allowed = sum(end - start for start, end in spans) / WEEK_SECS
    if allowed in (0.0, 1.0) or host.active.trace:
        return host
    measured = host.active.fraction
    if measured < allowed - 0.005:
        note(Message("measured_less", measured_hours=round(24 * measured, 1), allowed_hours=round(24 * allowed, 1)))
    return replace(host, active=_within(host.active, allowed), gpu_active=_within(host.gpu_active, allowed))


def _within(process: Availability, allowed: float) -> Availability:
    return replace(process, fraction=min(1.0, process.fraction / allowed))


def time_of_week(unix_secs: float, utc_offset_secs: float) -> float:
    """Return seconds since the last Sunday 0:00, local time."""
    return (unix_secs + utc_offset_secs + _EPOCH_WEEKDAY * DAY_SECS) % WEEK_SECS
