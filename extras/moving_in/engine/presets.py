"""Science United's presets of computing preferences, as this site keeps preferences. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from accounting.engine.preferences import PREFERENCES, canonical

_USUAL: Final[Mapping[str, float]] = {
    "max_ncpus_pct": 50,
    "run_if_user_active": 1,
    "run_gpu_if_user_active": 0,
    "idle_time_to_run": 3,
    "suspend_if_no_recent_input": 0,
    "suspend_cpu_usage": 25,
    "work_buf_min_days": 0.1,
    "work_buf_additional_days": 0.5,
    "disk_interval": 180,
    "disk_max_used_pct": 90,
    "disk_min_free_gb": 1,
    "ram_max_used_busy_pct": 50,
    "ram_max_used_idle_pct": 90,
    "leave_apps_in_memory": 1,
}
PRESETS: Final[Mapping[str, Mapping[str, float]]] = {
    "standard": _USUAL,
    "low_power": {**_USUAL, "max_ncpus_pct": 25, "suspend_if_no_recent_input": 10},
    "max": {
        **_USUAL,
        "max_ncpus_pct": 100,
        "run_gpu_if_user_active": 1,
        "suspend_cpu_usage": 0,
        "ram_max_used_busy_pct": 70,
    },
}
# What clients that know these do without them: as when the computer is in use.
_WHEN_IDLE: Final = {
    "niu_max_ncpus_pct": "max_ncpus_pct",
    "niu_cpu_usage_limit": "cpu_usage_limit",
    "niu_suspend_cpu_usage": "suspend_cpu_usage",
}
_PRESET: Final = re.compile(r"<preset>\s*(\w{1,40})\s*</preset>")
_ELEMENT: Final = re.compile(r"<(\w{1,40})>\s*([0-9.]{1,20})\s*</\1>")


class SavedPreferences(NamedTuple):
    """A complete set, and when it was saved in Unix seconds; 0: not known."""

    chosen: Mapping[str, object]
    saved_secs: float


def read(text: str, now: float) -> SavedPreferences | None:
    """What the stored preferences mean; None if there are none that say anything."""
    said = {name: float(value) for name, value in _ELEMENT.findall(text) if value.count(".") < 2 and value != "."}
    saved = said.pop("mod_time", 0.0)
    preset = _PRESET.search(text)
    chosen = dict(PRESETS.get(preset[1], {})) if preset else {}
    chosen.update((name, value) for name, value in said.items() if name in PREFERENCES)
    if not chosen:
        return None
    for idle, busy in _WHEN_IDLE.items():
        if busy in chosen:
            chosen.setdefault(idle, chosen[busy])
    return SavedPreferences(canonical(chosen), saved if 0 < saved < now + 86_400 else 0.0)
