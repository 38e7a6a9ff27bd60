"""Check the decisions of an external policy, so that one that breaks a rule fails its run with a sentence.

This project's own policies are tested instead: checking each of their choices would cost time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Final, NoReturn, TypeVar

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.policy import Policy, PolicyError
from emulator.engine.scenario import MAX_SECS
from emulator.engine.state import Job, ProjectState
from emulator.engine.timeline.reasons import Reason

ROUNDING: Final = 1e-6
T = TypeVar("T")


def described(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {str(error)[:150]}".replace("\n", " ").rstrip(".: ")


class GuardedPolicy:
    """A policy whose answers are checked. Raises PolicyError, which names the policy and the rule."""

    def __init__(self, policy: Policy, name: str) -> None:
        self._policy = policy
        self.name = name
        for method in ("begin", "accrue", "projects_changed", "job_ended", "choose", "fetch", "piggyback_request"):
            if not callable(getattr(policy, method, None)):
                self._refuse(f"has no method {method}")
        backoffs = getattr(policy, "uses_backoffs", None)
        if not isinstance(backoffs, bool):
            self._refuse("has no attribute uses_backoffs that is True or False")
        self.uses_backoffs: bool = backoffs

    def _refuse(self, what: str) -> NoReturn:
        raise PolicyError(f"The policy {self.name} {what}.")

    def _call(self, method: Callable[..., T], *arguments: Any) -> T:
        try:
            return method(*arguments)
        except (Exception, SystemExit) as error:
            raise PolicyError(f"The policy {self.name} failed in {method.__name__}: {described(error)}.") from error

    def begin(self, client: Client) -> None:
        self._client = client
        self._call(self._policy.begin, client)

    def accrue(self, now: float) -> None:
        self._call(self._policy.accrue, now)

    def projects_changed(self, now: float) -> None:
        self._call(self._policy.projects_changed, now)

    def job_ended(self, job: Job, now: float) -> None:
        self._call(self._policy.job_ended, job, now)

    def choose(self, now: float) -> Choice:
        choice = self._call(self._policy.choose, now)
        if not isinstance(choice, Choice):
            self._refuse("returned something other than a Choice from choose")
        self._check_time("choose", choice.recheck_secs)
        if choice.jobs is self._client.running:
            return choice
        if not isinstance(choice.jobs, Sequence) or not isinstance(choice.reasons, Sequence):
            self._refuse("returned a Choice whose jobs or reasons are not a list")
        jobs = list(choice.jobs)
        if len(choice.reasons) != len(jobs):
            self._refuse("returned a Choice that does not have one reason for each job")
        if not all(isinstance(reason, Reason) for reason in choice.reasons):
            self._refuse("gave a reason that is not in Reason")
        self._check_jobs(jobs)
        return choice

    def _check_jobs(self, jobs: Sequence[Job]) -> None:
        """Checks that each exists and may run now, and that together they fit."""
        client = self._client
        seen: set[int] = set()
        for job in jobs:
            if not isinstance(job, Job):
                self._refuse("chose something that is not a job")
            if job.id in seen:
                self._refuse(f"chose job {job.id} twice")
            seen.add(job.id)
            project = job.project
            waits = job in project.begun[job.kind] or (not job.started and job in project.waiting[job.kind])
            if job.done or project not in client.projects or not waits:
                self._refuse(f"chose job {job.id}, which the client does not have")
            if project.suspended:
                self._refuse(f"chose job {job.id} of the suspended project {project.name}")
            if not client.kind_active[job.kind]:
                self._refuse(f"chose job {job.id} for a {client.kinds[job.kind]} that may not compute now")
        for app, number in Counter(job.app for job in jobs).items():
            if 0 < app.app.max_concurrent < number:
                self._refuse(f"chose {number} jobs of {app.app.name}; at most {app.app.max_concurrent} may run at once")
        for kind, instances in enumerate(client.instances):
            of_kind = [(job, client.barred(job.project, job.app, kind)) for job in jobs if job.kind == kind]
            for job, barred in of_kind:
                used = sum(other.usage for other, its_barred in of_kind if its_barred & barred == barred)
                if barred and used > instances - barred.bit_count() + ROUNDING:
                    self._refuse(f"chose too many jobs for the {client.kinds[kind]} that job {job.id} may use")
            usages = [job.usage for job in jobs if job.kind == kind]
            # The last of the CPU's jobs may need more than is left; all are slowed then.
            used = sum(usages) - (max(usages, default=0.0) if kind == 0 else 0.0)
            if used > instances + ROUNDING or (kind == 0 and usages and used > instances - ROUNDING):
                self._refuse(f"chose too many jobs for {instances:g} × {client.kinds[kind]}")

    def fetch(self, now: float) -> Fetch:
        fetch = self._call(self._policy.fetch, now)
        if not isinstance(fetch, Fetch):
            self._refuse("returned something other than a Fetch from fetch")
        self._check_time("fetch", fetch.recheck_secs)
        if fetch.request is not None:
            self._check_request(fetch.request)
            if not self._client.can_ask(fetch.request.project, now):
                self._refuse(f"asks {fetch.request.project.name}, which may not be asked now (Client.can_ask)")
        return fetch

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        request = self._call(self._policy.piggyback_request, project, now)
        if request is not None:
            self._check_request(request)
            if request.project is not project:
                self._refuse("returned a request for another project from piggyback_request")
        return request

    def _check_request(self, request: WorkRequest) -> None:
        if not isinstance(request, WorkRequest):
            self._refuse("returned something other than a WorkRequest")
        if request.project not in self._client.projects:
            self._refuse("asks a project that the client does not have")
        if not isinstance(request.reason, Reason):
            self._refuse("gave a reason that is not in Reason")
        lists = [("secs", request.secs), ("instances", request.instances)]
        if request.delays_secs is not None:
            lists.append(("delays_secs", request.delays_secs))
        for name, values in lists:
            if not isinstance(values, list) or len(values) != len(self._client.kinds):
                self._refuse(f"made a request whose {name} does not have one number for each kind of processor")
            if not all(_is_number(value) and 0 <= value <= MAX_SECS * 4096 for value in values):
                self._refuse(f"made a request with {name} that are negative, too large or not numbers")

    def standing(self, project: ProjectState, now: float) -> float:
        value = self._call(self._policy.standing, project, now)
        if not _is_number(value):
            self._refuse("returned something other than a finite number from standing")
        return float(value)

    def _check_time(self, method: str, value: object) -> None:
        if not isinstance(value, Real) or math.isnan(value):
            self._refuse(f"returned a Choice or Fetch from {method} whose recheck_secs is not a number")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
