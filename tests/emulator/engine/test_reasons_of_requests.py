"""Under each policy a request for work names the kind of processor and the rule that caused it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from emulator.engine.client import Client
from emulator.engine.decisions import WorkRequest
from emulator.engine.events.contact import Contact
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import Scenario
from emulator.engine.state import ProjectState
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind, Decisions
from tests.support.emulated_client import OnObjects, forecast_of
from tests.support.random_scenarios import random_scenario

DAYS = 4.0


def saturated_secs(policy: Any, client: Client, kind: int, now: float) -> float:
    return float(forecast_of(policy, now)[1][kind])


def is_below_least(policy: Any, client: Client, request: WorkRequest, now: float) -> bool:
    return saturated_secs(policy, client, request.kind, now) < client.buffer_min_secs


def is_below_whole(policy: Any, client: Client, request: WorkRequest, now: float) -> bool:
    return client.buffer_min_secs <= saturated_secs(policy, client, request.kind, now) < client.buffer_total_secs


def has_shortfall(policy: Any, client: Client, request: WorkRequest, now: float) -> bool:
    return bool(forecast_of(policy, now)[2][request.kind] > 0)


def is_starved(policy: Any, client: Client, request: WorkRequest, now: float) -> bool:
    return not request.project.unfinished


def cpu_work_secs(client: Client, now: float) -> dict[int, list[float]]:
    """The CPU-seconds left of each CPU job, by project; a job of several CPUs counts once for each."""
    return {
        project.index: [
            job.left_secs(now) * job.cpus / max(1, int(job.cpus))
            for job in (*project.begun[0], *project.waiting[0])
            for _ in range(max(1, int(job.cpus)))
        ]
        for project in client.projects
        if not project.suspended
    }


def is_buffer_short(policy: Any, client: Client, request: WorkRequest, now: float) -> bool:
    work = sum(map(sum, cpu_work_secs(client, now).values()))
    return bool(work < client.instances[0] * client.buffer_min_secs)


def are_tasks_few(policy: Any, client: Client, request: WorkRequest, now: float) -> bool:
    """Enough work in all, but not enough long tasks to fill as many bins as there are CPUs."""
    bins, filled = 0, 0.0
    for secs in sorted((secs for each in cpu_work_secs(client, now).values() for secs in each), reverse=True):
        filled += secs
        if filled >= client.buffer_min_secs:
            bins, filled = bins + 1, 0.0
    return not is_buffer_short(policy, client, request, now) and bins < client.instances[0]


def is_project_short(policy: Any, client: Client, request: WorkRequest, now: float) -> bool:
    """The project that is asked has less than its part of the least buffer."""
    work = cpu_work_secs(client, now)
    part = request.project.share / sum(project.share for project in client.projects if not project.suspended)
    return bool(sum(work[request.project.index]) < part * client.instances[0] * client.buffer_min_secs)


def is_beside_wide(policy: Any, client: Client, request: WorkRequest, now: float) -> bool:
    """Other projects alone have jobs of several CPUs that wait."""
    waits = {
        project.index
        for project in client.projects
        for job in (*project.begun[0], *project.waiting[0])
        if job.cpus > 1 and not job.running
    }
    return request.kind == 0 and bool(waits) and request.project.index not in waits


RULES: dict[Reason, Callable[[Any, Client, WorkRequest, float], bool]] = {
    Reason.FETCH_SATURATION: is_below_least,
    Reason.FETCH_BESIDE_WIDE: is_beside_wide,
    Reason.FETCH_ALONG: has_shortfall,
    Reason.FETCH_MAJOR: is_below_least,
    Reason.FETCH_MINOR: is_below_whole,
    Reason.FETCH_STARVED: is_starved,
    Reason.FETCH_CPU_SHORTFALL: has_shortfall,
    Reason.FETCH_BUFFER: is_buffer_short,
    Reason.FETCH_FEW_TASKS: are_tasks_few,
    Reason.FETCH_PROJECT_SHORT: is_project_short,
}
"""What each reason says of the kind that the request names, recounted at the moment of the request."""

Asked = list[tuple[float, Reason, int, int, float]]


def named_and_asked(
    scenario: Scenario, name: PolicyName, seed: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Decisions, Asked]:
    """The run's decisions, and its requests as they were made; each is checked when it is made."""
    policy = make_policy(name, scenario, {})
    asked: Asked = []
    contacted, limited = Contact.rpc, Contact._within_limits

    def rpc(self: Any, project: ProjectState, request: WorkRequest | None, now: float) -> None:
        if request is not None:
            client = self._client
            assert client.can_ask(project, now)
            assert not client.backed_off(project, request.kind, now)
            assert RULES[request.reason](policy, client, request, now), request
            if not client.limited:
                note(request, now)
        contacted(self, project, request, now)

    def within_limits(self: Any, request: WorkRequest, now: float) -> WorkRequest | None:
        left = limited(self, request, now)
        if left is not None:
            note(left, now)
        return left

    def note(request: WorkRequest, now: float) -> None:
        """It asks for the kind that it is about; but the one number of the oldest policy is for all kinds."""
        kinds = range(len(request.secs)) if request.reason == Reason.FETCH_CPU_SHORTFALL else [request.kind]
        assert any(request.secs[kind] > 0 or request.instances[kind] > 0 for kind in kinds), request
        asked.append((now, request.reason, request.project.index, request.kind, request.secs[request.kind]))

    with monkeypatch.context() as patched:
        patched.setattr(Contact, "rpc", rpc)
        patched.setattr(Contact, "_within_limits", within_limits)
        return run(scenario, OnObjects(policy), DAYS, seed=seed).decisions, asked


@pytest.mark.parametrize("name", list(PolicyName))
def test_each_request_names_the_kind_and_the_rule_that_caused_it(
    name: PolicyName, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: Counter[Reason] = Counter()
    for seed in range(6):
        scenario = random_scenario(seed)
        if seed % 4 == 0:  # a server that has no more jobs: its project is backed off for one kind after the other
            scenario = replace(
                scenario, projects=(replace(scenario.projects[0], has_work=False), *scenario.projects[1:])
            )
        decisions, asked = named_and_asked(scenario, name, seed, monkeypatch)
        columns = (decisions.at_secs, decisions.reason, decisions.project, decisions.processor, decisions.amount)
        rows = zip(decisions.kind, *columns, strict=True)
        named = [tuple(row) for kind, *row in rows if kind == DecisionKind.ASK and row[1] in RULES]
        assert named == asked
        met.update(reason for _, reason, *_ in asked)
    assert met.total() > 30
    assert set(met) <= set(RULES)
    if name in (PolicyName.LTD, PolicyName.DEBT):
        assert len(met) == 3
