"""The owner's preferences in a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from emulator.engine.scenario.checks import DAY_SECS, Between, Instances, check_limits
from emulator.engine.scenario.limits import Hours, check_hours

BufferDays = Annotated[float, Between(0, 1000)]
PeriodSecs = Annotated[float, Between(60, 100 * DAY_SECS)]
CpusPercent = Annotated[float, Between(0.01, 100)]
CpuUsagePercent = Annotated[float, Between(1, 100)]
RamFraction = Annotated[float, Between(0, 1)]


@dataclass(frozen=True, slots=True)
class Preferences:
    """The owner's preferences. `period_secs` is the scheduling period (time slice).

    `max_ncpus` 0: no limit; else the smaller of the two limits counts. `cpu_usage_percent` is the part of the time in
    which tasks of a whole CPU or more run ("at most % of CPU time"). Of the RAM, tasks may use one fraction while the
    computer is in use, the other while it is not.
    """

    work_buf_min_days: BufferDays = 0.1
    work_buf_additional_days: BufferDays = 0.5
    period_secs: PeriodSecs = 3600.0
    max_cpus_percent: CpusPercent = 100.0
    report_at_once: bool = False
    max_ncpus: Instances = 0
    cpu_usage_percent: CpuUsagePercent = 100.0
    compute_hours: Hours = Hours()
    network_hours: Hours = Hours()
    run_if_user_active: bool = True
    run_gpu_if_user_active: bool = True
    run_on_batteries: bool = True
    ram_busy_fraction: RamFraction = 0.5
    ram_idle_fraction: RamFraction = 0.9

    def usable_cpus(self, ncpus: int) -> int:
        """How many of this many CPUs jobs may use: at least one, as in the client."""
        usable = int(ncpus * self.max_cpus_percent / 100)
        return max(1, min(usable, self.max_ncpus) if self.max_ncpus else usable)


def check_preferences(preferences: Preferences) -> None:
    check_limits("", preferences)
    check_hours("compute_hours", preferences.compute_hours)
    check_hours("network_hours", preferences.network_hours)
