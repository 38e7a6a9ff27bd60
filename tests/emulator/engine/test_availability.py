"""A computer that comes and goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import Availability
from emulator.files.presets import preset


@pytest.mark.parametrize("policy", PolicyName)
@pytest.mark.parametrize(("on", "active"), [(0.5, 1), (1, 0.5), (0.7, 0.7)])
def test_with_work_in_the_buffer_no_processor_idles_after_an_interruption(
    policy: str, on: float, active: float
) -> None:
    # Two projects that always have jobs, half a day in the buffer; interruptions of some hours.
    scenario = preset("s1_two_equal_cpu").scenario
    host = replace(scenario.host, on=Availability(on, 6 * 3600), active=Availability(active, 6 * 3600))
    scenario = replace(scenario, host=host)
    result = run(scenario, make_policy(policy, scenario, {}), 10, 1)
    assert result.figures.idle < 1e-9
