"""Small scenarios in which the emulator once did something wrong, and the right values."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.rec import Rec
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import Run
from emulator.files.scenario_json import read_document

CASES: Final = Path(__file__).parents[2] / "data" / "emulator" / "cases"


@pytest.mark.parametrize(
    ("name", "days"), [("once-a-second-gpu", 1.0), ("once-a-second-limits", 2.0), ("once-a-second-no-limits", 2.0)]
)
def test_a_queue_just_at_its_mark_is_looked_at_once_a_minute_at_most(name: str, days: float) -> None:
    scenario = read_document((CASES / f"{name}.json").read_bytes()).applied()
    made = Run(scenario, Rec(), days)
    made.result()
    # Once a minute is 1,440 times a day; jobs come, end and change their turns beside that.
    assert made.events <= 2000 * days


@pytest.mark.parametrize("policy", [PolicyName.REC, PolicyName.REC_LETTER])
@pytest.mark.parametrize("name", ["two-projects-of-share-0", "busy-server-backup-with-gpu"])
def test_projects_of_share_0_take_turns_where_no_other_has_work(name: str, policy: str) -> None:
    scenario = read_document((CASES / f"{name}.json").read_bytes()).applied()
    result = Run(scenario, make_policy(policy, scenario, {}), 5.0).result()
    parts = [project.got_fraction for project in result.projects if project.name.startswith("Backup")]
    assert parts == pytest.approx([0.5, 0.5], abs=0.05)


def test_tasks_of_two_cpus_take_no_more_than_the_owner_allows() -> None:
    # 75 % of four CPUs: one task runs on two of the three, and no other fits.
    scenario = read_document((CASES / "processor-limit-only-wide.json").read_bytes()).applied()
    assert Run(scenario, Rec(), 4.0).result().figures.idle == pytest.approx(1 / 3, abs=1e-6)
