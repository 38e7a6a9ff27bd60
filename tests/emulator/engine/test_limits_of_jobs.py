"""Limits on jobs at once: what they hold back is foreseen, and not asked for beyond what it can do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import Scenario
from emulator.engine.timeline.results import Result
from tests.support.emulated_client import client_of, cpu_app, give, gpu_app, project, scenario


def emulated(what: Scenario, policy: str) -> Result:
    return run(what, make_policy(policy, what, {}), 10.0)


@pytest.mark.parametrize("policy", [PolicyName.REC, PolicyName.LTD, PolicyName.LTD_SINGLE])
def test_what_one_project_may_not_use_another_gets(policy: str) -> None:
    # Four CPUs; A may use one. Counted as if A's jobs could run on all, they would fill the buffer, and B not be asked.
    a = replace(project("A", 100, cpu_app()), max_concurrent=1)
    result = emulated(scenario(a, project("B", 1, cpu_app()), cpus=4), policy)
    assert result.figures.idle < 0.01
    assert result.projects[0].instance_secs[0] == pytest.approx(10 * 86400, rel=0.05)


@pytest.mark.parametrize("policy", [PolicyName.REC, PolicyName.LTD, PolicyName.LTD_SINGLE])
@pytest.mark.parametrize("of_app", [True, False])
def test_a_project_with_a_limit_gets_no_more_than_that_many_cpus_can_do(policy: str, of_app: bool) -> None:
    app = replace(cpu_app(), max_concurrent=2) if of_app else cpu_app()
    alone = replace(project("A", 100, app), max_concurrent=0 if of_app else 2)
    (row,) = emulated(scenario(alone, cpus=4), policy).projects
    assert row.jobs == pytest.approx(2 * 240, abs=4)
    # 14.4 hours' buffer on two CPUs, and some more in one request.
    assert row.sent - row.jobs <= 2 * 15 + 8
    assert row.rpcs < 2 * row.jobs


def test_how_much_more_its_limits_let_a_project_do() -> None:
    what = scenario(replace(project("A", 1, cpu_app(), gpu_app()), max_concurrent=2), cpus=4, gpu=True)
    client = client_of(what)
    known = client.projects[0]
    assert known.most_used == [2.0, 2.0]
    give(client, 0, hours=3.0)
    # 0.6 days of buffer on two CPUs less 3 hours; on the GPU, of which there is one, the limit does not matter.
    assert client.usable_secs(known, 0, 0.0) == pytest.approx(2 * 0.6 * 86400 - 3 * 3600)
    assert client.usable_secs(known, 1, 0.0) == float("inf")
