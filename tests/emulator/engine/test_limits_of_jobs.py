"""Limits on jobs at once and excluded GPUs: what they hold back is foreseen; no more is asked for than can be done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import CPU, ExcludedGpu, Host, Processor, Project, Scenario
from emulator.engine.timeline.results import Result
from tests.support.emulated_client import GPU, client_of, cpu_app, give, gpu_app, project, scenario


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


TWO_GPUS = Host((Processor(CPU, 4, 1e9), Processor(GPU, 2, 2e9)))
NOT_THE_FIRST = (ExcludedGpu(GPU, 0),)


def gpu_days(policy: str, *projects: Project) -> list[float]:
    """Of each project in ten days, on two GPUs."""
    rows = emulated(Scenario(TWO_GPUS, projects), policy).projects
    return [row.instance_secs[1] / 86400 for row in rows]


@pytest.mark.parametrize("policy", [PolicyName.REC, PolicyName.REC_LETTER, PolicyName.LTD])
def test_a_gpu_that_one_project_may_not_use_another_gets(policy: str) -> None:
    # As if A's jobs could run on both GPUs, they would fill the buffer, and B not be asked.
    a = replace(project("A", 100, gpu_app()), excluded_gpus=NOT_THE_FIRST)
    assert gpu_days(policy, a, project("B", 100, gpu_app())) == pytest.approx([10.0, 10.0], abs=0.2)
    assert gpu_days(policy, a) == pytest.approx([10.0], abs=0.2)


def test_applications_that_may_use_the_same_gpu_alone_share_it() -> None:
    a = replace(project("A", 100, gpu_app()), excluded_gpus=NOT_THE_FIRST)
    b = replace(project("B", 100, gpu_app()), excluded_gpus=(ExcludedGpu(GPU, 0, "gpu"),))
    assert gpu_days(PolicyName.REC, a, b) == pytest.approx([5.0, 5.0], abs=0.2)
    other_gpu = replace(b, excluded_gpus=(ExcludedGpu(GPU, 1, "gpu"),))
    assert gpu_days(PolicyName.REC, a, other_gpu) == pytest.approx([10.0, 10.0], abs=0.2)


@pytest.mark.parametrize(
    "excluded",
    [ExcludedGpu(GPU, 2), ExcludedGpu("ATI", 0), ExcludedGpu(GPU, 0, "another")],
    ids=["no such number", "another kind", "another application"],
)
def test_what_names_another_gpu_or_application_excludes_nothing(excluded: ExcludedGpu) -> None:
    a = replace(project("A", 100, gpu_app()), excluded_gpus=(excluded,))
    assert gpu_days(PolicyName.REC, a) == pytest.approx([20.0], abs=0.2)


def test_a_project_that_may_use_no_gpu_is_not_asked() -> None:
    a = replace(project("A", 100, gpu_app()), excluded_gpus=(ExcludedGpu(GPU, 0), ExcludedGpu(GPU, 1)))
    result = emulated(Scenario(TWO_GPUS, (a, project("B", 1, gpu_app()))), PolicyName.REC)
    assert [(row.sent > 0, row.rpcs > 0) for row in result.projects] == [(False, False), (True, True)]


@pytest.mark.parametrize("policy", [PolicyName.REC, PolicyName.REC_LETTER])
def test_a_project_of_higher_priority_comes_first_whatever_the_shares(policy: str) -> None:
    first = replace(project("First", 1, cpu_app()), priority=1)
    second, last = project("Second", 1000, cpu_app()), replace(project("Last", 1000, cpu_app()), priority=-1)
    rows = emulated(scenario(last, second, first, cpus=2), policy).projects
    assert [row.sent > 0 for row in rows] == [False, False, True]
    # What the first may not do, the second does.
    limited = replace(first, max_concurrent=1)
    rows = emulated(scenario(last, second, limited, cpus=2), policy).projects
    assert [row.instance_secs[0] / 86400 for row in rows] == pytest.approx([0.0, 10.0, 10.0], abs=0.2)
