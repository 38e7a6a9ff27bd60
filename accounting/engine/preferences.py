"""The computing preferences that clients are sent: always a complete set, within sane limits. Pure.

Source: BOINC protocol, preferences elements. The preferences of a dynamic account manager replace the client's own. An
element left out falls back to the client's default, so none is.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Final, NamedTuple, TypeGuard


class Preference(NamedTuple):
    """An element's default and its limits."""

    default: float
    low: float
    high: float


_SWITCH_ON, _SWITCH_OFF = Preference(1, 0, 1), Preference(0, 0, 1)
_PERCENT: Final = 100.0

PREFERENCES: Final[dict[str, Preference]] = {
    "run_on_batteries": _SWITCH_OFF,
    "run_if_user_active": _SWITCH_ON,
    "run_gpu_if_user_active": _SWITCH_OFF,
    "idle_time_to_run": Preference(3, 0, 9999),  # minutes
    "suspend_if_no_recent_input": Preference(0, 0, 9999),  # minutes; 0: never
    "suspend_cpu_usage": Preference(25, 0, _PERCENT),  # 0: never
    "niu_suspend_cpu_usage": Preference(50, 0, _PERCENT),
    "start_hour": Preference(0, 0, 24),
    "end_hour": Preference(0, 0, 24),
    "net_start_hour": Preference(0, 0, 24),
    "net_end_hour": Preference(0, 0, 24),
    "leave_apps_in_memory": _SWITCH_OFF,
    "confirm_before_connecting": _SWITCH_OFF,
    "hangup_if_dialed": _SWITCH_OFF,
    "dont_verify_images": _SWITCH_OFF,
    "work_buf_min_days": Preference(0.1, 0, 10),
    "work_buf_additional_days": Preference(0.5, 0, 10),
    "max_ncpus_pct": Preference(100, 1, _PERCENT),
    "niu_max_ncpus_pct": Preference(100, 1, _PERCENT),
    "cpu_usage_limit": Preference(100, 1, _PERCENT),
    "niu_cpu_usage_limit": Preference(100, 1, _PERCENT),
    "cpu_scheduling_period_minutes": Preference(60, 1, 9999),
    "disk_interval": Preference(60, 0, 9_999_999),  # seconds
    "disk_max_used_gb": Preference(0, 0, 9_999_999),  # 0: no limit
    "disk_max_used_pct": Preference(90, 0, _PERCENT),
    "disk_min_free_gb": Preference(1, 0, 9_999_999),
    "vm_max_used_pct": Preference(75, 1, _PERCENT),
    "ram_max_used_busy_pct": Preference(50, 1, _PERCENT),
    "ram_max_used_idle_pct": Preference(90, 1, _PERCENT),
    "max_bytes_sec_up": Preference(0, 0, 1e12),  # 0: no limit
    "max_bytes_sec_down": Preference(0, 0, 1e12),
    "daily_xfer_limit_mb": Preference(0, 0, 9_999_999),  # 0: no limit
    "daily_xfer_period_days": Preference(0, 0, 9_999),
    "network_wifi_only": _SWITCH_OFF,
}

VENUES: Final = ("home", "work", "school")
"""Places that may have their own set; stored under "venues" in addition to the elements of the set for everywhere."""

PRESETS: Final[dict[str, dict[str, float]]] = {
    # Hardly noticeable or audible: few processors, and no GPU while somebody works.
    "office": {
        "idle_time_to_run": 10,
        "suspend_cpu_usage": 15,
        "niu_suspend_cpu_usage": 25,
        "max_ncpus_pct": 25,
        "niu_max_ncpus_pct": 50,
        "ram_max_used_busy_pct": 25,
        "ram_max_used_idle_pct": 50,
        "disk_max_used_gb": 10,
        "work_buf_additional_days": 0.25,
    },
    "night": {"start_hour": 22, "end_hour": 7},
    # The client's own defaults.
    "usual": {},
    # All that the computer has, also while it is in use; batteries are still spared.
    "everything": {
        "run_gpu_if_user_active": 1,
        "suspend_cpu_usage": 0,
        "niu_suspend_cpu_usage": 0,
        "leave_apps_in_memory": 1,
        "ram_max_used_busy_pct": 75,
        "ram_max_used_idle_pct": 95,
        "work_buf_min_days": 0.5,
        "work_buf_additional_days": 1,
    },
}
"""The elements in which a preset differs from the defaults."""


# Pairs of elements that single days may override: the hours to compute in, and those to use the network in.
DAY_HOURS: Final = (("start_hour", "end_hour"), ("net_start_hour", "net_end_hour"))
WEEKDAYS: Final = range(7)
"""Days as clients number them: 0 is Sunday."""


def days_of(chosen: Mapping[str, object]) -> dict[int, dict[str, float]]:
    """Return the days of a set with their own hours, each pair whole and within its limits."""
    days = chosen.get("days")
    if not isinstance(days, Mapping):
        return {}
    own_days = {}
    for day in WEEKDAYS:
        own = days.get(str(day))
        if isinstance(own, Mapping) and (hours := _hours(own)):
            own_days[day] = hours
    return own_days


def _hours(own: Mapping[str, object]) -> dict[str, float]:
    return {
        name: _within(own[name], PREFERENCES[name])
        for pair in DAY_HOURS
        if all(name in own for name in pair)
        for name in pair
    }


def canonical(chosen: Mapping[str, object]) -> dict[str, object]:
    """Return a set as it is stored: complete, with its days, if any differ."""
    days = {str(day): hours for day, hours in days_of(chosen).items()}
    return {**complete(chosen), "days": days} if days else {**complete(chosen)}


def own_venues(chosen: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Return the sets of the places that have their own, as stored."""
    venues = chosen.get("venues")
    if not isinstance(venues, Mapping):
        return {}
    return {name: venues[name] for name in VENUES if isinstance(venues.get(name), Mapping)}


def has_everywhere(chosen: Mapping[str, object]) -> bool:
    """Whether there is a set for everywhere, or only sets of places."""
    return any(name != "venues" for name in chosen)


def complete(chosen: Mapping[str, object]) -> dict[str, float]:
    """Complete a set: the chosen values, within each element's limits, and the defaults of the rest."""
    return {name: _within(chosen.get(name), limits) for name, limits in PREFERENCES.items()}


def faults(chosen: Mapping[str, object]) -> list[str]:
    """Validate a chosen set; return a sentence for each fault."""
    problems = []
    for name, value in chosen.items():
        if name == "venues":
            problems += _venue_faults(value)
            continue
        if name == "days":
            problems += _day_faults(value)
            continue
        limits = PREFERENCES.get(name)
        if limits is None:
            problems.append(f"{name} is no preference that clients know")
        elif not _is_number(value):
            problems.append(f"{name} must be a number")
        elif not limits.low <= value <= limits.high:
            problems.append(f"{name} must be from {limits.low:g} to {limits.high:g}")
    return problems


def _day_faults(days: object) -> list[str]:
    if not isinstance(days, Mapping):
        return ["days must be hours by the number of the day"]
    problems = [f"{day} is no day: 0 is Sunday, 6 is Saturday" for day in days if day not in map(str, WEEKDAYS)]
    hours = {name for pair in DAY_HOURS for name in pair}
    for day in WEEKDAYS:
        own = days.get(str(day), {})
        if not isinstance(own, Mapping):
            problems.append(f"day {day} must have hours")
            continue
        problems += [f"day {day}: {name} is none of a day's hours" for name in own if name not in hours]
        problems += [
            f"day {day}: {start} and {end} must be set together"
            for start, end in DAY_HOURS
            if (start in own) != (end in own)
        ]
        problems += [f"day {day}: {fault}" for fault in faults({name: own[name] for name in own if name in hours})]
    return problems


def _venue_faults(venues: object) -> list[str]:
    if not isinstance(venues, Mapping):
        return ["venues must be sets of preferences by place"]
    problems = [f"{name} is no place that clients know" for name in venues if name not in VENUES]
    for name in VENUES:
        if name in venues:
            own = venues[name]
            is_set = isinstance(own, Mapping) and "venues" not in own
            problems += (
                [f"{name}: {fault}" for fault in faults(own)] if is_set else [f"{name} must be a set of preferences"]
            )
    return problems


def _within(value: object, limits: Preference) -> float:
    return min(max(value, limits.low), limits.high) if _is_number(value) else limits.default


def _is_number(value: object) -> TypeGuard[float]:
    # isfinite() fails for integers that are too large for a float.
    return type(value) is int or (type(value) is float and isfinite(value))
