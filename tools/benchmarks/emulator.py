"""Simulated days per second of processor time: compiled, with and without the timeline, and on objects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from emulator.engine.kernel.built import FOLDER
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import Availability, Scenario
from emulator.files.presets import preset
from emulator.files.scenario_json import read_document
from tools.benchmarks.harness.rounds import least_cpu_secs

# Scenario, policy and days; long enough that a run takes a tenth of a second or more on objects.
RUNS: Final = {
    "s1_two_equal_cpu": ("rec", 100),
    "s2_gpu_example1": ("rec", 100),
    "s4_shares_60_30_10": ("rec", 100),
    "n50_projects": ("rec", 20),
    "q010_min_jobs": ("rec", 10),
    "interruptions": ("rec", 20),
    "real_16_cpus": ("rec", 4),
    "real_16_cpus, ltd": ("ltd", 2),
    "real_16_cpus, debt": ("debt", 4),
    "real_64_cpus": ("rec", 1),
}
TIMES_COMPILED: Final = 10  # multiple of the days when it is compiled
REPEATS: Final = 3
SCENARIOS: Final = Path(__file__).parent / "scenarios"


def measure() -> dict[str, Any]:
    """Measure the best of three runs by scenario: with the timeline recorded, in `without_timeline` without, and in
    `on_objects` as it is without Numba, with the timeline.
    """
    folder = Path(os.environ.get(FOLDER, "var/emulator_kernel")).resolve()
    environment = {**os.environ, FOLDER: str(folder)}
    subprocess.run([sys.executable, "-m", "emulator.runs.kernel_build"], env=environment, check=True)
    compiled, objects = _in_process(environment), _in_process({**environment, "NUMBA_DISABLE_JIT": "1"})
    return {**compiled["timeline"], "without_timeline": compiled["without"], "on_objects": objects["timeline"]}


def _in_process(environment: dict[str, str]) -> dict[str, dict[str, float]]:
    """Measure in a separate process: whether it is compiled is decided when it starts."""
    command = [sys.executable, "-m", "tools.benchmarks.emulator"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    figures: dict[str, dict[str, float]] = json.loads(done.stdout)
    return figures


def _main() -> None:
    from emulator.engine.kernel.compiled import IS_COMPILED

    times = TIMES_COMPILED if IS_COMPILED else 1
    rows = {name: (scenario_of(name), policy, days * times) for name, (policy, days) in RUNS.items()}
    figures = {"timeline": {name: _days_per_sec(*row, timeline=True) for name, row in rows.items()}}
    if IS_COMPILED:
        figures["without"] = {name: _days_per_sec(*row, timeline=False) for name, row in rows.items()}
    json.dump(figures, sys.stdout)


def scenario_of(name: str) -> Scenario:
    """Return a typical computer, by its file; a preset; or s1 on a computer that is interrupted every half an hour."""
    if name == "interruptions":
        scenario = preset("s1_two_equal_cpu").scenario
        return replace(scenario, host=replace(scenario.host, active=Availability(0.5, 1800.0)))
    file = SCENARIOS / f"{name.partition(',')[0]}.json"
    return read_document(file.read_bytes()).applied() if file.exists() else preset(name).scenario


def _days_per_sec(scenario: Scenario, policy: str, days: int, *, timeline: bool) -> float:
    def once() -> None:
        run(scenario, make_policy(policy, scenario, {}), days, timeline=timeline)

    return round(days / least_cpu_secs(once, REPEATS), 1)


if __name__ == "__main__":
    _main()
