"""The owner's preferences in a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.engine.scenario.checks import DAY_SECS, check_number


@dataclass(frozen=True, slots=True)
class Preferences:
    """The owner's preferences. `period_secs` is the scheduling period (time slice)."""

    work_buf_min_days: float = 0.1
    work_buf_additional_days: float = 0.5
    period_secs: float = 3600.0
    max_cpus_percent: float = 100.0
    report_at_once: bool = False


def check_preferences(preferences: Preferences) -> None:
    check_number("work_buf_min_days", preferences.work_buf_min_days, 0, 1000)
    check_number("work_buf_additional_days", preferences.work_buf_additional_days, 0, 1000)
    check_number("period_secs", preferences.period_secs, 60, 100 * DAY_SECS)
    check_number("max_cpus_percent", preferences.max_cpus_percent, 0.01, 100)
