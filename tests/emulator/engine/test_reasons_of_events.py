"""Why jobs stopped, failed or went on, and why servers were contacted or sent nothing: worked out again from the
scenario and whatever else the run recorded. With the tests of choices, requests and lateness, every reason is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from emulator.engine.events.contact import MAX_READY, REPORT_DELAY_SECS
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Availability,
    Backoffs,
    ChangeProcessor,
    Detach,
    Host,
    Hours,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    StartJob,
    StartState,
    Use,
    Version,
)
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind, HostState, Result, Timeline
from tests.emulator.engine.test_reasons_of_requests import RULES
from tests.support.emulated_client import GPU, HOUR_SECS

DAYS = 4.0
ROUNDING_SECS = 1e-6
NIGHTS = Hours(22, 6)
RAM_BYTES = 8e9
LARGE_BYTES = 6e9
CPUS_4 = Host((Processor(CPU, 4, 1e9), Processor(GPU, 1, 5e9, 0.2)))


@dataclass(frozen=True)
class Row:
    """A decision, and its place among all."""

    place: int
    at_secs: float
    kind: int
    reason: int
    project: int
    job: int
    processor: int
    amount: float


class Told:
    """A run, and what can be asked about it."""

    def __init__(self, scenario: Scenario, result: Result) -> None:
        made = result.decisions
        assert result.timeline is not None
        self.scenario = scenario
        self.timeline: Timeline = result.timeline
        columns = (made.at_secs, made.kind, made.reason, made.project, made.job, made.processor, made.amount)
        self.rows = [Row(place, *row) for place, row in enumerate(zip(*columns, strict=True))]

    def project(self, row: Row) -> Project:
        return self.scenario.projects[row.project]

    def apps(self, row: Row) -> Iterator[tuple[App, Version]]:
        """The project's applications and versions for the kind that the row is about."""
        kind = self.timeline.kinds[row.processor]
        for app in self.project(row).apps:
            yield from ((app, version) for version in app.versions if version.kind == kind)

    def state(self, at_secs: float) -> HostState:
        states = zip(self.timeline.state_from_secs, self.timeline.states, strict=True)
        return [HostState(state) for since, state in states if since <= at_secs][-1]

    def contacts(self, row: Row) -> list[tuple[float, int, int, int]]:
        """The contacts of its project: when, the numbers of jobs sent and reported, and whether it answered."""
        rpcs = self.timeline.rpcs
        rows = zip(rpcs.at_secs, rpcs.got, rpcs.reported, rpcs.answered, rpcs.project, strict=True)
        return [(at, got, reported, answered) for at, got, reported, answered, index in rows if index == row.project]

    def contact(self, row: Row) -> tuple[int, int, int]:
        """What came of the contact that the row is about."""
        return next((of[1:] for of in self.contacts(row) if of[0] == row.at_secs), (0, 0, 0))

    def sent(self, at_secs: float) -> range:
        """The numbers of the jobs sent at this time. They count up, beginning with those at the start."""
        rpcs = self.timeline.rpcs
        rows = list(zip(rpcs.at_secs, rpcs.got, strict=True))
        first = len(self.scenario.jobs) + sum(got for at, got in rows if at < at_secs)
        return range(first, first + sum(got for at, got in rows if at == at_secs))

    def is_left_alone(self, row: Row) -> bool:
        """Whether its project is not contacted for as long as the row says."""
        return not any(row.at_secs < at < row.at_secs + row.amount for at, *_ in self.contacts(row))

    def running(self, place: int) -> set[int]:
        """The jobs that are running just before this row."""
        jobs: set[int] = set()
        for row in self.rows[:place]:
            if row.kind == DecisionKind.RUN:
                jobs.add(row.job)
            elif row.kind in (DecisionKind.STOP, DecisionKind.END):
                jobs.discard(row.job)
        return jobs

    def after(self, row: Row) -> int:
        """The place after the last row of the same moment."""
        return next((other.place for other in self.rows[row.place :] if other.at_secs > row.at_secs), len(self.rows))

    def has_run(self, row: Row) -> set[int]:
        """The jobs that ran before."""
        return {other.job for other in self.rows[: row.place] if other.kind == DecisionKind.RUN}

    def ended(self, row: Row) -> list[Row]:
        """The project's finished jobs that wait to be reported."""
        last = max([at for at, _, _, answered in self.contacts(row) if answered and at < row.at_secs], default=-1.0)
        mine = (other for other in self.rows[: row.place] if other.project == row.project)
        return [other for other in mine if other.kind == DecisionKind.END and other.at_secs > last]


def preempted_for_another(told: Told, row: Row) -> bool:
    others = {other.job for other in told.rows[row.place : told.after(row)] if other.kind == DecisionKind.RUN}
    computes = told.state(row.at_secs) in (HostState.COMPUTING, HostState.NO_GPU)
    return bool(others - {row.job}) and computes and all(event.at_secs != row.at_secs for event in told.scenario.events)


def is_unavailable(told: Told, row: Row) -> bool:
    state = told.state(row.at_secs)
    return state in (HostState.OFF, HostState.INACTIVE) or (row.processor > 0 and state == HostState.NO_GPU)


def is_outside_hours(told: Told, row: Row) -> bool:
    return 6 <= row.at_secs / HOUR_SECS % 24 < 22 and told.scenario.preferences.compute_hours == NIGHTS


def is_in(state: HostState) -> Callable[[Told, Row], bool]:
    return lambda told, row: told.state(row.at_secs) == state


def lacks_memory(told: Told, row: Row) -> bool:
    used = len(told.running(told.after(row))) * LARGE_BYTES
    needs = max(app.working_set_bytes for app, _ in told.apps(row))
    return used + needs > RAM_BYTES * told.scenario.preferences.ram_idle_fraction and needs > 0


def is_event(event: type[Detach | ChangeProcessor]) -> Callable[[Told, Row], bool]:
    def happens(told: Told, row: Row) -> bool:
        due = [other for other in told.scenario.events if isinstance(other, event) and other.at_secs == row.at_secs]
        return any(getattr(other, "project", told.project(row).name) == told.project(row).name for other in due)

    return happens


def does_not_answer(told: Told, row: Row) -> bool:
    answers = [answered for at, *_, answered in told.contacts(row) if at == row.at_secs]
    return answers == [0] and told.is_left_alone(row)


def sent_none(told: Told, row: Row) -> bool:
    """Whether it answered without a job of that kind, and is not asked for one for as long as the row says."""
    _, _, answered = told.contact(row)
    kinds = {other.job: other.processor for other in told.rows if other.kind == DecisionKind.RUN}
    again = [
        other.at_secs
        for other in told.rows[row.place :]
        if other.reason in RULES and other.project == row.project and other.processor == row.processor
    ]
    is_kept_off = not any(row.at_secs < at < row.at_secs + row.amount - ROUNDING_SECS for at in again)
    got = {kinds.get(job) for job in told.sent(row.at_secs)}
    return bool(answered) and row.amount > 0 and row.processor not in got and is_kept_off


def would_be_late(told: Told, row: Row) -> bool:
    return any(app.estimate.mean / version.flops > app.latency_bound_secs for app, version in told.apps(row))


def was_running(told: Told, row: Row) -> bool:
    ran = [job for job, start in enumerate(told.scenario.jobs) if start.state is StartState.RUNNING]
    return row.at_secs == 0.0 and row.job in ran


def server_asked_for_it(told: Told, row: Row) -> bool:
    at_secs = told.project(row).backoffs.next_rpc_secs
    return 0.0 < at_secs <= row.at_secs < at_secs + 60.0 and not told.ended(row)


def is_reported_at_once(told: Told, row: Row) -> bool:
    return told.scenario.preferences.report_at_once and bool(told.ended(row))


def is_first_old(told: Told, row: Row) -> bool:
    ended = told.ended(row)
    at_once = told.scenario.preferences.report_at_once
    return bool(ended) and not at_once and row.at_secs >= ended[0].at_secs + REPORT_DELAY_SECS - ROUNDING_SECS


def is_deadline_near(told: Told, row: Row) -> bool:
    """Whether it reported within two hours, with few jobs ready: only a deadline brings that about."""
    ended = told.ended(row)
    soon = bool(ended) and row.at_secs < ended[0].at_secs + REPORT_DELAY_SECS
    return soon and len(ended) < MAX_READY and not told.scenario.preferences.report_at_once


def are_many_ready(told: Told, row: Row) -> bool:
    return len(told.ended(row)) >= MAX_READY


def may_fail(told: Told, row: Row) -> bool:
    return any(app.error_rate for app, _ in told.apps(row)) and told.is_left_alone(row)


def is_period(row: Row) -> bool:
    periods = row.at_secs / HOUR_SECS
    return abs(periods - round(periods)) < 1e-9


def is_resumed(told: Told, row: Row) -> bool:
    return is_period(row) and row.job in told.has_run(row)


def is_new(told: Told, row: Row) -> bool:
    """Whether it never ran, and no preempted job of its project waits."""
    over = {other.job for other in told.rows[: row.place] if other.kind == DecisionKind.END}
    mine = {other.job for other in told.rows[: row.place] if other.project == row.project}
    waits = (told.has_run(row) & mine) - over - told.running(told.after(row))
    return is_period(row) and row.job not in told.has_run(row) and not waits and not was_running(told, row)


def is_mid_period(told: Told, row: Row) -> bool:
    """Whether it is between two periods, or at the start of the first one, which began without any job."""
    is_first = row.at_secs == 0.0 and row.job not in told.has_run(row) and not was_running(told, row)
    return is_first or not is_period(row)


CHECKS: dict[Reason, Callable[[Told, Row], bool]] = {
    Reason.PREEMPTED: preempted_for_another,
    Reason.UNAVAILABLE: is_unavailable,
    Reason.OUTSIDE_HOURS: is_outside_hours,
    Reason.IN_USE: is_in(HostState.IN_USE),
    Reason.ON_BATTERIES: is_in(HostState.ON_BATTERIES),
    Reason.EXCLUSIVE_APP: is_in(HostState.EXCLUSIVE_APP),
    Reason.NO_MEMORY: lacks_memory,
    Reason.DETACHED: is_event(Detach),
    Reason.HARDWARE: is_event(ChangeProcessor),
    Reason.SERVER_DOWN: does_not_answer,
    Reason.SERVER_DRY: sent_none,
    Reason.SERVER_DEADLINE: would_be_late,
    Reason.WAS_RUNNING: was_running,
    Reason.CONTACT_ASKED: server_asked_for_it,
    Reason.REPORT_AT_ONCE: is_reported_at_once,
    Reason.REPORT_HOUR: is_first_old,
    Reason.REPORT_DEADLINE: is_deadline_near,
    Reason.REPORT_MANY: are_many_ready,
    Reason.JOB_FAILED: may_fail,
    Reason.DEBT_RESUMED: is_resumed,
    Reason.DEBT_NEW: is_new,
    Reason.DEBT_MID_PERIOD: is_mid_period,
}

TOLD_ELSEWHERE = {
    *RULES,  # test_reasons_of_requests
    *(Reason.CPU_DEADLINE, Reason.CPU_PRIORITY, Reason.GPU_DEADLINE, Reason.GPU_PRIORITY),  # test_reasons_of_choices
    *(Reason.JOB_MET, Reason.JOB_LATE, Reason.JOB_REPORTED_LATE, Reason.JOB_UNREPORTED, Reason.JOB_UNFINISHED),
    *(Reason.OWN_CHOICE, Reason.OWN_REQUEST),  # what a policy of one's own says
}
NEVER_LOGGED = {Reason.NONE, Reason.SLICE, Reason.DEBT_KEPT}  # a job that keeps running makes no row


def app(name: str, hours: float, version: Version, latency_secs: float = 20 * DAY_SECS) -> App:
    flop = hours * HOUR_SECS * version.flops
    return App(name, (version,), Normal(flop, 0.1 * flop), Normal(flop), latency_secs)


ON_CPU, ON_GPU = Version(1e9), Version(2e9, 0.5, GPU, 1.0)
A = Project("A", 100, (app("a", 3.0, ON_CPU), app("g", 1.0, ON_GPU)))
B = Project("B", 50, (app("b", 1.3, ON_CPU), app("g", 2.0, ON_GPU)))


def servers() -> Scenario:
    """Servers that are down, that have no jobs, or whose jobs would be late or fail; one asks to be contacted."""
    failing = replace(app("f", 2.0, ON_CPU), error_rate=0.3)
    projects = (
        replace(A, backoffs=Backoffs(next_rpc_secs=600.0, allowed_secs=300.0)),
        replace(B, name="down", available=Availability(0.4, 6 * HOUR_SECS)),
        replace(B, name="dry", has_work=False),
        Project("late", 50, (app("l", 3.0, ON_CPU, 2 * HOUR_SECS),)),
        Project("fails", 50, (failing,)),
    )
    jobs = tuple(
        StartJob("A", "a", 1.08e13, 1.08e13, 9 * DAY_SECS, state=state)
        for state in (StartState.RUNNING, StartState.NEW)
    )
    return Scenario(CPUS_4, projects, Preferences(0.1, 0.3), jobs=jobs)


def owner(**changes: Any) -> Scenario:
    """A computer whose owner or power supply stops it from computing at times."""
    preferences = Preferences(0.1, 0.3, run_if_user_active=False, run_on_batteries=False)
    return Scenario(replace(CPUS_4, **changes), (A, B), preferences)


def short_jobs() -> Scenario:
    """Jobs so short that many of them wait to be reported."""
    return Scenario(CPUS_4, (Project("S", 1, (app("s", 0.1, ON_CPU),)),), Preferences(0.1, 0.3))


SOMETIMES = Use(0.3, 2 * HOUR_SECS)
SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "servers": servers,
    "off": lambda: owner(on=Availability(0.6, 5 * HOUR_SECS)),
    "no GPU": lambda: owner(gpu_active=Availability(0.6, 5 * HOUR_SECS)),
    "in use": lambda: owner(in_use=SOMETIMES),
    "on batteries": lambda: owner(on_batteries=SOMETIMES),
    "exclusive": lambda: owner(exclusive_app=SOMETIMES),
    "nights": lambda: Scenario(CPUS_4, (A, B), Preferences(0.1, 0.3, compute_hours=NIGHTS)),
    "at once": lambda: Scenario(CPUS_4, (A, B), Preferences(0.1, 0.3, report_at_once=True)),
    "short": short_jobs,
    "near deadlines": lambda: Scenario(
        CPUS_4, (Project("N", 100, (app("n", 1.0, ON_CPU, 6 * HOUR_SECS),)),), Preferences(0.05, 0.05)
    ),
    "memory": lambda: Scenario(
        replace(CPUS_4, ram_bytes=RAM_BYTES), (replace(A, apps=(replace(A.apps[0], working_set_bytes=LARGE_BYTES),)),)
    ),
    "changes": lambda: Scenario(
        CPUS_4, (A, B), events=(Detach(DAY_SECS + 1.0, "B"), ChangeProcessor(2 * DAY_SECS, CPU, 2))
    ),
}


@cache
def told(name: str, policy: str = PolicyName.REC) -> Told:
    scenario = SCENARIOS[name]()
    return Told(scenario, run(scenario, make_policy(policy, scenario, {}), DAYS, seed=2))


def all_told() -> list[Told]:
    return [told(name) for name in SCENARIOS] + [told("in use", PolicyName.DEBT), told("at once", PolicyName.DEBT)]


def test_every_reason_is_told_again_somewhere() -> None:
    assert {*CHECKS, *TOLD_ELSEWHERE} == set(Reason) - NEVER_LOGGED


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_said_is_so(name: str) -> None:
    run_told = told(name)
    for row in run_told.rows:
        assert row.reason not in NEVER_LOGGED
        if row.reason in CHECKS:
            assert CHECKS[Reason(row.reason)](run_told, row), row


def test_what_is_said_of_the_policy_of_2005_is_so() -> None:
    """The computer is always on, so its periods end on the hour."""
    run_told = told("at once", PolicyName.DEBT)
    for row in run_told.rows:
        if row.reason in CHECKS:
            assert CHECKS[Reason(row.reason)](run_told, row), row


@pytest.mark.parametrize("reason", CHECKS)
def test_another_reason_would_be_found_false(reason: Reason) -> None:
    """Each reason occurs, and wherever it does, every other reason of its kind is false at least once."""
    rows = [(run_told, row) for run_told in all_told() for row in run_told.rows if row.reason == reason]
    assert rows
    kinds = {row.kind for _, row in rows}
    others = {row.reason for run_told in all_told() for row in run_told.rows if row.kind in kinds} & {*CHECKS}
    for other in others - {reason}:
        assert not all(CHECKS[Reason(other)](run_told, row) for run_told, row in rows), other
