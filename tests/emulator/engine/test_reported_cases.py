"""Small scenarios in which the emulator once did something wrong, and the right values."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from emulator.engine.policies.rec import Rec
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
