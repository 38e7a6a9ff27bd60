"""Simulated days per second of processor time, under the present client's policy, with and without the timeline."""

from __future__ import annotations

from typing import Any, Final

from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.files.presets import preset
from tools.benchmarks.harness.rounds import least_cpu_secs

# Scenario and days; long enough that a run takes a tenth of a second or more.
RUNS: Final = {
    "s1_two_equal_cpu": 100,
    "s2_gpu_example1": 100,
    "s4_shares_60_30_10": 100,
    "n50_projects": 20,
    "q010_min_jobs": 10,
}
REPEATS: Final = 5


def measure() -> dict[str, Any]:
    """By scenario, the best of five runs: with the timeline recorded, and in `without_timeline` without."""
    figures: dict[str, Any] = {name: _days_per_sec(name, days, timeline=True) for name, days in RUNS.items()}
    figures["without_timeline"] = {name: _days_per_sec(name, days, timeline=False) for name, days in RUNS.items()}
    return figures


def _days_per_sec(name: str, days: int, *, timeline: bool) -> float:
    scenario = preset(name).scenario
    return round(days / least_cpu_secs(lambda: run(scenario, Rec(), days, timeline=timeline), REPEATS), 1)
