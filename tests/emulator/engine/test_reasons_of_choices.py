"""Why a job started: worked out again from the state, without the rules of the kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from emulator.engine.client import Client
from emulator.engine.decisions import Choice
from emulator.engine.kernel.bounds import DOUBT, MIN_MARGIN_SECS
from emulator.engine.kernel.queues import make_queues
from emulator.engine.policies.in_arrays import ArrayPolicy
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import CPU, Processor, Scenario, Version
from emulator.engine.state import Job
from emulator.engine.timeline.reasons import Reason
from tests.support.emulated_client import GPU, OnObjects
from tests.support.literal_round_robin import Case, literally
from tests.support.random_scenarios import random_scenario

DAYS = 4.0
EVERY = 3  # the choices that are checked
ROUNDING_SECS = 1e-6


class Checked(OnObjects):
    """A policy whose choices are compared with the documents' words when they are made. On plain computers each job
    takes one CPU, or one GPU and nothing else, so that only ranks and deadlines decide."""

    def __init__(self, policy: ArrayPolicy) -> None:
        super().__init__(policy)
        self.arrays = policy
        self.nchoices = 0
        self.seen: Counter[Reason] = Counter()

    def begin(self, client: Client) -> None:
        self.client = client
        self.policy.begin(client)

    def choose(self, now: float) -> Choice:
        choice: Choice = self.policy.choose(now)
        self.nchoices += 1
        if self.nchoices % EVERY == 0 and choice.reasons:  # none if all go on
            self._check(choice, now)
        return choice

    def _check(self, choice: Choice, now: float) -> None:
        t = self.arrays.table()
        q = make_queues(t, now, 0)
        case = Case(
            self.client,
            now,
            dict(enumerate(q.projects["rank"].tolist())),
            dict(enumerate(q.projects["unit"].tolist())),
            dict(enumerate(q.projects["tier"].tolist())),
        )
        jobs = self.client.jobs()
        ends = literally(case).ends
        late = {job.id for job in jobs if ends[job.id] > self._due_secs(job, now) + ROUNDING_SECS}
        started = [(job, reason) for job, reason in zip(choice.jobs, choice.reasons, strict=True) if not job.running]
        for job, reason in started:
            self.seen[reason] += 1
            if reason == (Reason.GPU_DEADLINE if job.kind else Reason.CPU_DEADLINE):
                assert job.id in late
                self._check_deadline(job, choice, late, now)
            else:
                assert reason == (Reason.GPU_PRIORITY if job.kind else Reason.CPU_PRIORITY)
                assert job.id not in late
                self._check_priority(job, choice, q, now)

    def _due_secs(self, job: Job, now: float) -> float:
        """From now; one that may take longer than estimated is due earlier."""
        doubt = DOUBT if self.arrays.name == PolicyName.REC else 0.0
        return (
            job.deadline_secs - now - MIN_MARGIN_SECS - doubt * job.left_secs(now) / self.client.up_fraction[job.kind]
        )

    def _check_deadline(self, job: Job, choice: Choice, late: set[int], now: float) -> None:
        """No late job that is due earlier waits, but for those that nothing can save."""
        chosen = {other.id for other in choice.jobs}
        is_lost = self._is_lost(job, now)
        for other in self.client.jobs():
            if other.id in late - chosen and self._is_lost(other, now) <= is_lost:
                assert other.deadline_secs >= job.deadline_secs

    def _is_lost(self, job: Job, now: float) -> bool:
        return self.arrays.name == PolicyName.REC and now + job.left_secs(now) > job.deadline_secs

    def _check_priority(self, job: Job, choice: Choice, q: Any, now: float) -> None:
        """With what was chosen before it, no project that has a job to offer comes before its own; and no preempted job
        of its own project waits."""
        units = dict(enumerate(q.projects["unit"].tolist()))
        ranks = dict(enumerate(q.projects["rank"].tolist()))
        tiers = q.projects["tier"].tolist()
        if self.arrays.name == PolicyName.LTD:  # debts take shares into account already
            ranks = {index: rank / units[index] for index, rank in ranks.items()}
            units = dict.fromkeys(units, 1.0)
        place = [other.id for other in choice.jobs].index(job.id)
        before = choice.jobs[:place]
        for other in before:
            index = other.project.index
            ranks[index] += units[index] * other.counted_flops * self.client.period_secs
        its = job.project.index
        taken = {other.id for other in before}
        for other in self.client.jobs():
            if other.id not in taken:
                index = other.project.index
                rounding = 1e-9 * abs(ranks[index])
                assert (tiers[its], ranks[its], its) <= (tiers[index], ranks[index] + rounding, index)
                if other.project is job.project and other.started:
                    assert job.started


def on_gpus(scenario: Scenario) -> Scenario:
    """The same with GPUs instead of CPUs."""
    projects = [
        replace(project, apps=tuple(replace(app, versions=(Version(1e9, 0.0, GPU, 1.0),)) for app in project.apps))
        for project in scenario.projects
    ]
    gpus = Processor(GPU, scenario.host.processors[0].instances, 1e9)
    host = replace(scenario.host, processors=(Processor(CPU, 1, 1e9), gpus))
    return replace(scenario, host=host, projects=tuple(projects))


@pytest.mark.parametrize("name", [PolicyName.REC, PolicyName.REC_LETTER, PolicyName.LTD])
@pytest.mark.parametrize("kind", [CPU, GPU])
def test_a_job_starts_for_its_deadline_or_for_its_projects_turn(name: PolicyName, kind: str) -> None:
    seen: Counter[Reason] = Counter()
    for seed in range(2):
        scenario = random_scenario(seed, is_plain=True)
        if kind == GPU:
            scenario = on_gpus(scenario)
        checked = Checked(make_policy(name, scenario, {}))
        run(scenario, checked, DAYS, seed=seed, timeline=False)
        seen.update(checked.seen)
    on_cpus = {Reason.CPU_DEADLINE, Reason.CPU_PRIORITY}
    assert set(seen) == (on_cpus if kind == CPU else {Reason.GPU_DEADLINE, Reason.GPU_PRIORITY})
    assert min(seen.values()) > 10
