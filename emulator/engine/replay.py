"""Run a scenario again up to one of its decisions, and show what the policy knew at that moment.

The same scenario, policy and seed give the same run, so nothing has to be stored for this during a run. The figures
come from the policy's own round-robin simulation (emulator.engine.kernel.simulations); the same simulation is recorded
in its general form, which shows which job would have which instance when.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.kernel import decide, simulations
from emulator.engine.kernel.bounds import may_miss_deadlines
from emulator.engine.policies.in_arrays import ArrayPolicy, missed_numbers
from emulator.engine.policies.recorded_turns import RecordedTurns
from emulator.engine.policies.registry import SIMULATING
from emulator.engine.policy import Policy
from emulator.engine.run import Emulation
from emulator.engine.state import NEVER, Job, ProjectState
from emulator.engine.table import Table
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind
from emulator.engine.uncompiled import column
from portal.languages.messages import Message, MessageError

NO_SIMULATION: Final = Message("replay_without_simulation")
NO_DECISION: Final = Message("replay_no_decision")
OTHER_RUN: Final = Message("replay_other_run")
_FORECAST: Final = ("instances", "idle", "saturated_secs", "shortfall_secs")


class ReplayError(MessageError):
    """The moment cannot be shown, for one of the reasons above."""


@dataclass(frozen=True, slots=True)
class DecisionKey:
    """A decision of a run: its position among the recorded ones (results.Decisions), and its recorded data."""

    number: int
    at_secs: float
    kind: int
    reason: int
    project: int
    job: int


@dataclass(frozen=True, slots=True)
class ProcessorForecast:
    """A kind of processor: instances, how many of them are idle now, how long all are busy (exact up to the end of the
    buffer), and the instance-seconds that are missing up to the end of the buffer.
    """

    kind: str
    instances: float
    idle: float
    saturated_secs: float
    shortfall_secs: float


@dataclass(frozen=True, slots=True)
class JobForecast:
    """A job. `begin_secs` and `end_secs` are None if the record of the simulation was full before."""

    job: int
    project: int
    kind: str
    is_running: bool
    left_secs: float
    begin_secs: float | None
    end_secs: float | None
    deadline_secs: float
    is_late: bool


@dataclass(frozen=True, slots=True)
class ProjectStanding:
    """A project as the policy ranks it for work requests. `place` from 1, or 0 if it may not be asked now; then
    `obstacle` says why. `priority` is None for such projects, and for those that always come last. `backoffs_secs`: per
    kind of processor, how long it is not asked for it.
    """

    project: int
    share: float
    standing: float
    place: int
    priority: float | None
    obstacle: str
    wait_secs: float
    backoffs_secs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """The work request that was made: per kind of processor, instance-seconds and instances."""

    project: int
    kind: str
    secs: tuple[float, ...]
    instances: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """A policy's knowledge when it made a decision. All times are seconds from then, and projects are numbered as in
    the scenario. `stretches`: lane, begin, end, project, job; jobs for which there was no whole CPU have lane -1.
    `was_searched`: late jobs were searched for, because a bound did not rule them out.
    """

    buffer_min_secs: float
    buffer_total_secs: float
    processors: tuple[ProcessorForecast, ...]
    lanes: tuple[tuple[str, int], ...]
    stretches: tuple[tuple[int, float, float, int, int], ...]
    is_cut: bool
    jobs: tuple[JobForecast, ...]
    was_searched: bool
    projects: tuple[ProjectStanding, ...]
    request: Request | None


def is_of_the_policy(kind: int, reason: int) -> bool:
    """Whether a decision of a run was made with the simulation: which jobs run, or whom to ask for work."""
    if kind == DecisionKind.RUN:
        return reason != Reason.WAS_RUNNING
    if kind == DecisionKind.ASK:
        in_range = Reason.FETCH_SATURATION <= reason <= Reason.FETCH_PROJECT_SHORT
        return in_range or reason == Reason.FETCH_BESIDE_WIDE
    return kind == DecisionKind.STOP and reason == Reason.PREEMPTED


def moment(run: Emulation, policy: ArrayPolicy, key: DecisionKey) -> Moment:
    """Repeats the run of that policy up to that decision.

    Raises ReplayError if the policy uses no such simulation, if the decision was not the policy's, or if the run
    differs from the original.
    """
    if policy.name not in SIMULATING:
        raise ReplayError(NO_SIMULATION)
    observers: list[_Observer] = []

    def watched(client: Client) -> Policy:
        observers.append(_Observer(policy, key, client))
        return observers[0]

    run.watch(key.at_secs, watched)
    with suppress(_ReachedError):
        run.result()
    return observers[0].moment()


class _ReachedError(Exception):
    """The decision was made; ends the run."""


class _Observer:
    """The policy under observation: its knowledge when it was last called before that decision."""

    def __init__(self, policy: ArrayPolicy, key: DecisionKey, client: Client) -> None:
        self._policy = policy
        self._key = key
        self._client = client
        self._seen: Moment | None = None
        self._request: WorkRequest | None = None
        self.name = policy.name
        self.uses_backoffs = policy.uses_backoffs

    def begin(self, client: Client) -> None:
        """Does nothing: the run has begun before."""

    def accrue(self, now: float) -> None:
        self._policy.accrue(now)

    def projects_changed(self, now: float) -> None:
        self._policy.projects_changed(now)

    def job_ended(self, job: Job, now: float) -> None:
        self._policy.job_ended(job, now)

    def standing(self, project: ProjectState, now: float) -> float:
        return self._policy.standing(project, now)

    def choose(self, now: float) -> Choice:
        self._stop_if_past()
        choice = self._policy.choose(now)
        if self._key.kind in (DecisionKind.RUN, DecisionKind.STOP):
            self._look(now)
        return choice

    def fetch(self, now: float) -> Fetch:
        self._stop_if_past()
        fetch = self._policy.fetch(now)
        self._look_at_request(fetch.request, now)
        return fetch

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        self._stop_if_past()
        request = self._policy.piggyback_request(project, now)
        self._look_at_request(request, now)
        return request

    def _look_at_request(self, request: WorkRequest | None, now: float) -> None:
        key = self._key
        if key.kind == DecisionKind.ASK and request is not None and request.project.index == key.project:
            self._request = request
            self._look(now)

    def _look(self, now: float) -> None:
        if now == self._key.at_secs:
            self._seen = _seen(self._client, self._policy, now)

    def _stop_if_past(self) -> None:
        if len(self._client.log) > self._key.number:
            raise _ReachedError

    def moment(self) -> Moment:
        key, made = self._key, self._client.log.decisions()
        number = key.number
        columns = (made.at_secs, made.kind, made.reason, made.project, made.job)
        columns_of_key = (key.at_secs, key.kind, key.reason, key.project, key.job)
        if len(made) <= number or tuple(column[number] for column in columns) != columns_of_key:
            raise ReplayError(OTHER_RUN)
        if self._seen is None:
            raise ReplayError(NO_DECISION)
        if self._request is None:
            return self._seen
        # Read only now: it was reduced to what limits of concurrent jobs let the project use.
        asked = self._request
        kind = self._client.kinds[asked.kind]
        return replace(
            self._seen,
            request=Request(asked.project.index, kind, tuple(asked.secs), tuple(asked.instances)),
        )


def _seen(client: Client, policy: ArrayPolicy, now: float) -> Moment:
    """Everything shown of a moment, except the request. It is read at once, because it changes after."""
    t = policy.table()
    simulations.forecast(t, now)
    processors = tuple(
        ProcessorForecast(client.kinds[place], *(float(row[name]) for name in _FORECAST))
        for place, row in enumerate(t.kinds)
        if client.present[place]
    )
    horizon_secs = client.buffer_total_secs
    turns = RecordedTurns(t, now, client.present)
    was_searched = may_miss_deadlines(t, now)
    late: set[int] = set()
    if was_searched:
        simulations.judge(t, now)
        late.update(*missed_numbers(t))
    return Moment(
        client.buffer_min_secs,
        horizon_secs,
        processors,
        tuple((client.kinds[kind], number) for kind, number in turns.lanes),
        tuple(turns.rows()),
        turns.is_cut,
        _jobs(client, turns, late, now),
        was_searched,
        _projects(client, policy, t, now),
        None,
    )


def _jobs(client: Client, turns: RecordedTurns, late: set[int], now: float) -> tuple[JobForecast, ...]:
    """The client's jobs in the order in which they would run."""
    rows = []
    for job in client.jobs():
        begin_secs, end_secs = turns.begin_and_end(job.id)
        rows.append(
            JobForecast(
                job.id,
                job.project.index,
                client.kinds[job.kind],
                job.running,
                job.left_secs(now),
                begin_secs,
                end_secs,
                job.deadline_secs - now,
                job.id in late,
            )
        )
    return tuple(sorted(rows, key=lambda row: (NEVER if row.begin_secs is None else row.begin_secs, row.job)))


def _projects(client: Client, policy: ArrayPolicy, t: Table, now: float) -> tuple[ProjectStanding, ...]:
    count = decide.find_order(t, now)
    order = column(t.projects, "order", count).tolist()
    priorities = {
        index: priority for index, priority in zip(order, policy.priorities(t, order), strict=True) if priority > -NEVER
    }
    total = sum(project.share for project in client.projects) or 1.0
    return tuple(
        ProjectStanding(
            project.index,
            project.share / total,
            policy.standing(project, now),
            order.index(project.index) + 1 if project.index in order else 0,
            priorities.get(project.index),
            "" if project.index in order else _obstacle(project, now),
            max(0.0, project.rpc_allowed_secs - now),
            tuple(max(0.0, until - now) for until in project.backoff_until_secs),
        )
        for project in client.projects
    )


def _obstacle(project: ProjectState, now: float) -> str:
    """Why a project may not be asked for work at all; in the order of Client.can_ask."""
    if project.rpc_allowed_secs > now:
        return "waits"
    if project.suspended:
        return "suspended"
    if project.no_new_tasks:
        return "no new tasks"
    return "job suspended" if project.held else "enough jobs"
