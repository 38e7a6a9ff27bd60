"""The figures of BOINC's own emulator (of August 2026, measured) and ours, for the same scenarios.

``python -m tests.support.boinc_comparison`` prints the table of docs/explanation/emulator.md.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from emulator.engine.policies.rec import Rec
from emulator.engine.quirks import BOINC, Quirks
from emulator.engine.run import run
from emulator.engine.timeline.results import Result
from emulator.files.presets import preset
from emulator.files.scenario import read_folder

DATA = Path(__file__).parents[1] / "data" / "emulator"
LONG_JOBS = ("jobs_24_h", "jobs_72_h", "jobs_2_h_no_buffer", "jobs_24_h_no_buffer", "jobs_72_h_no_buffer")
MAX_DAYS = 100.0  # the year-long ones would take long and say nothing new
# Shown for ten days, because BOINC's emulator was measured for these only.
TEN_DAYS = ("q060_min_jobs", "q010_min_jobs")


def rows() -> list[dict[str, str]]:
    """What BOINC's emulator printed for each scenario and length, without options of its command line."""
    with (DATA / "boinc_emulator_results.csv").open() as file:
        return [row for row in csv.DictReader(file) if not row["options"] and float(row["days"]) <= MAX_DAYS]


def ours(row: dict[str, str], quirks: Quirks) -> Result:
    """The same scenario and length in our emulator."""
    name = row["scenario"]
    scenario = read_folder(DATA / "scenarios" / name) if name in LONG_JOBS else preset(name).scenario
    return run(scenario, Rec(), float(row["days"]), quirks=quirks, timeline=False)


def _table() -> Iterator[str]:
    yield "| scenario, days | share violation: BOINC | default | quirks | RPCs per job: BOINC | default | quirks |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows():
        if float(row["days"]) < MAX_DAYS and row["scenario"] not in TEN_DAYS:
            continue
        default, quirks = ours(row, Quirks()).figures, ours(row, BOINC).figures
        violations = (float(row["share_violation"]), default.share_violation, quirks.share_violation)
        rpcs = (float(row["rpcs_per_job"]), default.rpcs_per_job, quirks.rpcs_per_job)
        cells = [f"{row['scenario']}, {float(row['days']):.0f}", *(f"{value:.4f}" for value in violations)]
        yield f"| {' | '.join([*cells, *(f'{value:.3f}' for value in rpcs)])} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in _table())
