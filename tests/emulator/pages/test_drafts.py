"""Scenarios that are changed before they run."""

from __future__ import annotations

import pytest

from emulator.engine.scenario import ScenarioError
from emulator.pages.drafts import ScenarioChange, changed
from tests.support.emulator_experiments import example


def test_a_faster_computer_runs_its_jobs_faster() -> None:
    faster = changed(example(), ScenarioChange([2], [8e9], [1, 1], 0.2, 1.0))
    assert faster.projects[0].apps[0].versions[0].flops == 8e9
    assert [project.share for project in faster.projects] == [1, 1]
    assert faster.preferences.work_buf_min_days == 0.2


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf"), 1e304])
def test_an_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(ScenarioError, match="CPU"):
        changed(example(), ScenarioChange([2], [speed], [1, 1], 0.2, 1.0))
