"""The figures of BOINC's own emulator (of August 2026, measured) beside ours, for the same scenarios.

Ours may be better; with BOINC's quirks they are to be the same. docs/explanation/emulator.md explains what differs
more.
"""

from __future__ import annotations

import pytest

from emulator.engine.quirks import BOINC, Quirks
from tests.support.boinc_comparison import LONG_JOBS, ours, rows

FIGURES = ("wasted", "idle", "share_violation")
SCENARIOS = (
    "s1_two_equal_cpu",
    "s2_gpu_example1",
    "s3_tight_deadlines",
    "s4_shares_60_30_10",
    "q010_min_jobs",
    "q060_min_jobs",
    "n10_projects",
    "n50_projects",
)
TOLERANCE = 0.02


ROWS = [row for row in rows() if row["scenario"] in SCENARIOS + LONG_JOBS]


def _parts(row: dict[str, str]) -> dict[str, float]:
    """What BOINC's emulator printed of the projects' parts: the first six at most."""
    return {name: float(part) / 100 for name, part in (entry.split("=") for entry in row["project_share_pct"].split())}


def _name(row: dict[str, str]) -> str:
    return f"{row['scenario']}-{row['days']}"


def test_the_table_has_all_scenarios() -> None:
    assert {row["scenario"] for row in ROWS} == set(SCENARIOS + LONG_JOBS)
    assert len(ROWS) == 19


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_by_default_no_figure_is_worse(row: dict[str, str]) -> None:
    result = ours(row, Quirks())
    for name in FIGURES:
        # In ten days what is in the buffer at the end, up to six per cent of the work, makes chance differences.
        tolerance = TOLERANCE if float(row["days"]) > 10 else 1.5 * TOLERANCE
        assert getattr(result.figures, name) <= float(row[name]) + tolerance, name
    # A small project is asked for one job after the other where BOINC gives it more than its share.
    limit = 1.25 if row["scenario"] in SCENARIOS else 1.6
    assert result.figures.rpcs_per_job <= limit * float(row["rpcs_per_job"])
    late = sum(project.late for project in result.projects)
    # In s3 a job may last longer than estimated, and has no time to spare. In BOINC's emulator none does. With other
    # seeds 0 or 1 of a hundred are late, and 2 to 5 of a thousand.
    assert late <= int(row["jobs_missed"]) + 1 + 0.005 * int(row["jobs_met"])
    if row["scenario"] == "n50_projects" and row["days"] == "10.0":
        return  # 21 of 50 projects have been asked by then: which ones is the order in which equal ones are asked
    got = {project.name: project for project in result.projects}
    for name, theirs in _parts(row).items():
        part, aim = got[name].got_fraction, got[name].share
        assert abs(part - theirs) <= tolerance or abs(part - aim) <= abs(theirs - aim), name


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_with_boincs_quirks_the_figures_are_boincs(row: dict[str, str]) -> None:
    result = ours(row, BOINC)
    for name in FIGURES:
        assert getattr(result.figures, name) == pytest.approx(float(row[name]), abs=TOLERANCE), name
    assert result.figures.rpcs_per_job == pytest.approx(float(row["rpcs_per_job"]), rel=0.25)
    jobs = sum(project.met for project in result.projects)
    assert jobs == pytest.approx(int(row["jobs_met"]), rel=0.01, abs=4)
