"""The owner's preferences in a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from emulator.engine.scenario.checks import DAY_SECS, Between, check_limits

BufferDays = Annotated[float, Between(0, 1000)]
PeriodSecs = Annotated[float, Between(60, 100 * DAY_SECS)]
CpusPercent = Annotated[float, Between(0.01, 100)]


@dataclass(frozen=True, slots=True)
class Preferences:
    """The owner's preferences. `period_secs` is the scheduling period (time slice)."""

    work_buf_min_days: BufferDays = 0.1
    work_buf_additional_days: BufferDays = 0.5
    period_secs: PeriodSecs = 3600.0
    max_cpus_percent: CpusPercent = 100.0
    report_at_once: bool = False


def check_preferences(preferences: Preferences) -> None:
    check_limits("", preferences)
