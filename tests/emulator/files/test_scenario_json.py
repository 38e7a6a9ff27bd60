"""Scenarios as JSON and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.engine.scenario import ScenarioError
from emulator.files.presets import preset
from emulator.files.scenario_json import from_json, to_json


def test_a_scenario_survives_its_json() -> None:
    for key in ("s1_two_equal_cpu", "s2_gpu_example1"):
        scenario = preset(key).scenario
        assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


@pytest.mark.parametrize("data", [None, [], {}, {"host": 1}, {"projects": "x"}])
def test_json_that_is_no_scenario_is_refused(data: Any) -> None:
    with pytest.raises(ScenarioError):
        from_json(data)
