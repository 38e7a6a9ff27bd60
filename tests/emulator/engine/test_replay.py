"""The forecast that is shown of a decision is the one that its policy used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.policies.in_arrays import ArrayPolicy, missed_numbers
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.replay import (
    NO_DECISION,
    NO_SIMULATION,
    OTHER_RUN,
    DecisionKey,
    Moment,
    ReplayError,
    moment,
)
from emulator.engine.run import Emulation, run
from emulator.engine.scenario import Scenario
from emulator.engine.state import ProjectState
from emulator.engine.timeline.results import DecisionKind, Decisions
from tests.support.emulated_client import OnObjects
from tests.support.random_scenarios import random_scenario

DAYS = 3.0
SIMULATING = (PolicyName.REC, PolicyName.REC_LETTER, PolicyName.LTD, PolicyName.LTD_SINGLE)


Forecast = tuple[list[float], list[float], list[float]]


@dataclass
class Call:
    """A policy was asked which jobs run (`is_choice`), or for a request, after this many recorded decisions; and what
    its simulation told it then. Numbers are copied, as a result may change after."""

    ndecisions: int
    at_secs: float
    is_choice: bool
    forecast: Forecast | None = None
    late: set[int] | None = None


class Listener(OnObjects):
    """Notes when the policy was asked, and what its simulations found."""

    def __init__(self, policy: ArrayPolicy) -> None:
        super().__init__(policy)
        self.arrays = policy
        self.calls: list[Call] = []

    def begin(self, client: Client) -> None:
        self.client = client
        self.policy.begin(client)

    def choose(self, now: float) -> Choice:
        choice: Choice = self._noted(now, True, lambda: self.policy.choose(now))
        return choice

    def fetch(self, now: float) -> Fetch:
        fetch: Fetch = self._noted(now, False, lambda: self.policy.fetch(now))
        return fetch

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        request: WorkRequest | None = self._noted(now, False, lambda: self.policy.piggyback_request(project, now))
        return request

    def _noted(self, now: float, is_choice: bool, method: Callable[[], Any]) -> Any:
        call = Call(len(self.client.log), now, is_choice)
        self.calls.append(call)
        made = method()
        assert self.arrays._exchange is not None
        t = self.arrays._exchange.table
        if t.run[0]["sim_at"] == now:
            idle, saturated, shortfall = (
                t.kinds[name].tolist() for name in ("idle", "saturated_secs", "shortfall_secs")
            )
            call.forecast = idle, saturated, shortfall
        if t.run[0]["judged_at"] == now:
            call.late = {number for numbers in missed_numbers(t) for number in numbers}
        return made


def run_and_listen(scenario: Scenario, name: str) -> tuple[Decisions, list[Call]]:
    """A run, and the calls of its policy."""
    listener = Listener(make_policy(name, scenario, {}))
    return run(scenario, listener, DAYS, seed=3, timeline=False).decisions, listener.calls


def call_before(calls: list[Call], made: Decisions, number: int) -> Call | None:
    """The last call of the policy before a decision, at the same instant, that can have led to it."""
    is_choice = made.kind[number] == DecisionKind.RUN
    fitting = [
        call
        for call in calls
        if call.ndecisions <= number and call.at_secs == made.at_secs[number] and call.is_choice == is_choice
    ]
    return fitting[-1] if fitting else None


def key_of(made: Decisions, number: int) -> DecisionKey:
    columns = (made.at_secs, made.kind, made.reason, made.project, made.job)
    at_secs, kind, reason, project, job = (column[number] for column in columns)
    return DecisionKey(number, at_secs, int(kind), int(reason), int(project), int(job))


def replayed(scenario: Scenario, name: str, decision: DecisionKey) -> Moment:
    policy = make_policy(name, scenario, {})
    return moment(Emulation(scenario, policy, DAYS, 3, timeline=False), policy, decision)


def of_the_picture(seen: Moment, place: int, kind: str) -> tuple[float, float]:
    """What the lanes of a kind say: the saturated time and the shortfall, both up to the end of the buffer."""
    horizon = seen.buffer_total_secs
    lanes = {lane for lane, (its_kind, _) in enumerate(seen.lanes) if its_kind == kind}
    mine = [(begin, min(end, horizon)) for lane, begin, end, *_ in seen.stretches if lane in lanes and begin < horizon]
    busy = sum(end - begin for begin, end in mine)
    edges = sorted({0.0, horizon, *(edge for stretch in mine for edge in stretch)})
    gaps = (at for at in edges[:-1] if sum(begin <= at < end for begin, end in mine) < len(lanes))
    return next(gaps, horizon), len(lanes) * horizon - busy


@pytest.mark.parametrize("name", SIMULATING)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_what_is_shown_is_what_the_policy_used(name: str, seed: int) -> None:
    scenario = random_scenario(seed)
    made, calls = run_and_listen(scenario, name)
    draw = Random(seed)
    asked = [n for n, kind in enumerate(made.kind) if kind == DecisionKind.ASK and call_before(calls, made, n)]
    for number in draw.sample(asked, min(4, len(asked))):
        call = call_before(calls, made, number)
        try:
            seen = replayed(scenario, name, key_of(made, number))
        except ReplayError as error:
            assert error.message == NO_DECISION  # a report along with which nothing was asked for
            continue
        rows = seen.processors
        shown = ([r.idle for r in rows], [r.saturated_secs for r in rows], [r.shortfall_secs for r in rows])
        assert call is not None and call.forecast in (None, shown)
        assert call.late is None or {row.job for row in seen.jobs if row.is_late} == call.late
        assert seen.request is not None and seen.request.project == made.project[number]
    chosen = [n for n, kind in enumerate(made.kind) if kind == DecisionKind.RUN]
    for number in draw.sample(chosen, min(4, len(chosen))):
        call = call_before(calls, made, number)
        seen = replayed(scenario, name, key_of(made, number))
        assert call is not None and {row.job for row in seen.jobs if row.is_late} == (call.late or set())
        askable = [row for row in seen.projects if not row.obstacle]
        assert sorted(row.place for row in askable) == list(range(1, len(askable) + 1))
        assert all(row.place == 0 for row in seen.projects if row.obstacle)
        assert made.job[number] in {row.job for row in seen.jobs}


def some_run() -> tuple[Scenario, Decisions]:
    scenario = random_scenario(0)
    return scenario, run(scenario, make_policy("rec", scenario, {}), DAYS, seed=3, timeline=False).decisions


def test_what_is_no_decision_of_the_policy_is_not_shown() -> None:
    scenario, made = some_run()
    ended = [*made.kind].index(DecisionKind.END)
    with pytest.raises(ReplayError, match=str(NO_DECISION)):
        replayed(scenario, "rec", key_of(made, ended))


def test_a_run_that_would_be_another_one_now_is_not_shown() -> None:
    scenario, made = some_run()
    for changed in (replace(key_of(made, 3), at_secs=0.5), replace(key_of(made, 3), number=199_000)):
        with pytest.raises(ReplayError, match=str(OTHER_RUN)):
            replayed(scenario, "rec", changed)


def test_the_policy_of_2005_has_no_such_simulation() -> None:
    scenario, made = some_run()
    with pytest.raises(ReplayError, match=str(NO_SIMULATION)):
        replayed(scenario, "debt", key_of(made, 3))


@pytest.mark.parametrize("name", SIMULATING)
def test_the_picture_has_the_figures_beside_it(name: str) -> None:
    nseen = 0
    for seed in range(4):
        scenario = random_scenario(seed, is_plain=True)
        made = run(scenario, make_policy(name, scenario, {}), DAYS, seed=3, timeline=False).decisions
        asked = [n for n, kind in enumerate(made.kind) if kind == DecisionKind.ASK]
        for number in asked[:: max(1, len(asked) // 5)]:
            try:
                seen = replayed(scenario, name, key_of(made, number))
            except ReplayError:
                continue
            nseen += 1
            assert all(row.obstacle != "enough jobs" for row in seen.projects)  # there are no limits
            for place, row in enumerate(seen.processors):
                saturated, shortfall = of_the_picture(seen, place, row.kind)
                assert min(row.saturated_secs, seen.buffer_total_secs) == pytest.approx(saturated, abs=1e-3)
                assert row.shortfall_secs == pytest.approx(shortfall, abs=1e-2)
    assert nseen > 5
