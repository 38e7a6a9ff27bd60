"""Earliest deadline first: always run the jobs whose deadlines come first, and ask the project that got least."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.scenario import Scenario
from emulator.engine.state import NEVER, Job, ProjectState
from emulator.engine.timeline.reasons import Reason

CHECK_SECS = 600.0


class EarliestDeadline:
    """Knows deadlines alone: no shares when it chooses jobs, and shares only when it asks for work."""

    policy_api_version = 1
    name = "earliest-deadline"
    uses_backoffs = True

    def __init__(self, scenario: Scenario, parameters: Mapping[str, Any]) -> None:
        pass  # one object serves one run; this policy needs nothing of the scenario, and has no parameters

    def begin(self, client: Client) -> None:
        self.client = client

    def accrue(self, now: float) -> None:
        pass  # the client counts the work of each project itself

    def projects_changed(self, now: float) -> None:
        pass

    def job_ended(self, job: Job, now: float) -> None:
        pass

    def choose(self, now: float) -> Choice:
        """The earliest deadlines first, as long as there is room."""
        client = self.client
        free = list(client.instances)
        jobs = []
        for job in sorted(client.jobs(), key=lambda job: (job.deadline_secs, job.id)):
            can_run = client.kind_active[job.kind] and not job.project.suspended
            if can_run and job.usage <= free[job.kind]:
                free[job.kind] -= job.usage
                jobs.append(job)
        # Nothing changes before a job ends or arrives.
        return Choice(jobs, [Reason.OWN_CHOICE] * len(jobs), NEVER)

    def fetch(self, now: float) -> Fetch:
        """When less than the minimum buffer is left: ask the project that got least of its share."""
        client = self.client
        askable = [project for project in client.projects if client.can_ask(project, now)]
        for project in sorted(askable, key=lambda project: (self.standing(project, now), project.index)):
            request = self._request(project, now)
            if request is not None:
                return Fetch(request, now)
        return Fetch(None, now + CHECK_SECS)

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        return self._request(project, now)

    def standing(self, project: ProjectState, now: float) -> float:
        """Work done for it so far, for each unit of its share."""
        return project.used_flop / project.share if project.share else 1e30

    def _request(self, project: ProjectState, now: float) -> WorkRequest | None:
        """What it takes to fill the buffer of each kind of processor, and idle instances; None if nothing is needed."""
        client = self.client
        secs = [0.0] * len(client.kinds)
        idle = [0.0] * len(client.kinds)
        for kind, instances in enumerate(client.instances):
            if not project.can_supply[kind] or client.backed_off(project, kind, now):
                continue
            have = client.work_secs(kind, now)
            idle[kind] = max(0.0, instances - sum(job.usage for job in client.jobs() if job.kind == kind))
            if idle[kind] or have < client.buffer_min_secs * instances:
                secs[kind] = max(1.0, client.buffer_total_secs * instances - have)
        if not any(secs):
            return None
        return WorkRequest(project, secs, idle, Reason.OWN_REQUEST)
