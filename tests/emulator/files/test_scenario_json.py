"""Scenarios as JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from emulator.engine.scenario import Availability, ScenarioError
from emulator.files.presets import preset
from emulator.files.scenario_json import from_json, to_json


def test_a_scenario_survives_its_json() -> None:
    for key in ("s1_two_equal_cpu", "s2_gpu_example1"):
        scenario = preset(key).scenario
        assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


def test_a_trace_survives_json() -> None:
    scenario = preset("s1_two_equal_cpu").scenario
    on = Availability.of_trace(((0.5, 10.25), (20.0, 100.0)), 100.0)
    scenario = replace(scenario, host=replace(scenario.host, on=on))
    assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


@pytest.mark.parametrize("data", [None, [], {}, {"host": 1}, {"projects": "x"}])
def test_json_that_is_no_scenario_is_refused(data: Any) -> None:
    with pytest.raises(ScenarioError):
        from_json(data)
