"""docs/reference/states.md: every legal state of a result is taken by the tables, all others are not, and every line of
the list of transitions happens, by the part of the site that the list names."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState, ValidateState
from credit.models import Result, Workunit
from portal.models import Host
from scheduler.lifecycle import transitioner
from tests.support.credit_factories import NOON, make_app, make_workunit
from tests.support.state_document import WORDS, State, listed_states, listed_transitions

pytestmark = pytest.mark.django_db

WEEK_LATER = NOON + dt.timedelta(days=7)


def columns(state: State, host: Host) -> dict[str, Any]:
    """What a result in this state has besides."""
    server_state, outcome, validate_state = state
    fields: dict[str, Any] = {"server_state": server_state, "outcome": outcome, "validate_state": validate_state}
    if server_state != ServerState.UNSENT:
        fields |= {"host": host, "user_id": host.owner_id, "sent_at": NOON, "deadline_at": NOON + dt.timedelta(days=1)}
    if outcome == Outcome.SUCCESS:
        fields |= {"received_at": NOON}
    return fields


def put(workunit: Workunit, state: State, host: Host) -> Result:
    """A result of the workunit in this state."""
    name = f"{workunit.name}_{workunit.results.count()}"
    return Result.objects.create(workunit=workunit, app=workunit.app, name=name, **columns(state, host))


def test_the_document_lists_what_the_code_knows() -> None:
    assert listed_states() == {state for state in WORDS.values() if state is not None}
    assert {state for state, *_ in listed_states()} == set(ServerState)
    assert {outcome for _, outcome, _ in listed_states()} == set(Outcome)
    assert {checked for *_, checked in listed_states()} == set(ValidateState)
    for before, after, who in listed_transitions():
        assert before in WORDS and after in WORDS, (before, after)
        assert set(who.split(", ")) <= {
            "submission", "transitioner", "scheduler", "validator", "cancelling", "hourly task",
        }  # fmt: skip


def test_rules_and_tables_have_the_same_numbers() -> None:
    tables = (
        (Result, "server_state", ServerState),
        (Result, "outcome", Outcome),
        (Result, "validate_state", ValidateState),
        (Workunit, "assimilate_state", AssimilateState),
        (Workunit, "file_delete_state", FileDeleteState),
    )
    for model, column, states in tables:
        field = {field.name: field for field in model._meta.concrete_fields}[column]
        assert {number for number, _ in field.flatchoices} == set(states), column


def test_the_tables_take_legal_states_and_no_others(studio: Host) -> None:
    workunit = make_workunit(make_app())
    taken = set()
    for number, state in enumerate(itertools.product(range(8), range(9), range(7))):
        try:
            with transaction.atomic():
                Result.objects.create(workunit=workunit, app=workunit.app, name=f"r_{number}", **columns(state, studio))
            taken.add(state)
        except IntegrityError:
            continue
    assert taken == listed_states()


@pytest.mark.parametrize(
    "broken",
    [
        {"server_state": 2, "sent_at": NOON},
        {"server_state": 4, "outcome": 0, "sent_at": NOON},  # no deadline
        {"server_state": 5, "outcome": 1},  # never received
    ],
)
def test_the_tables_refuse_states_without_what_belongs_to_them(broken: dict[str, Any]) -> None:
    workunit = make_workunit(make_app())
    with pytest.raises(IntegrityError), transaction.atomic():
        Result.objects.create(workunit=workunit, app=workunit.app, name="broken", **broken)


def test_a_workunit_is_not_assimilated_without_result_or_reason() -> None:
    workunit = make_workunit(make_app())
    with pytest.raises(IntegrityError), transaction.atomic():
        Workunit.objects.filter(pk=workunit.pk).update(assimilate_state=AssimilateState.READY)


def transitioner_case(before: State, after: State, host: Host) -> tuple[Workunit, Result]:
    """A workunit on which the transitioner has to take a result from the one state to the other."""
    fields: dict[str, Any] = {"transition_at": NOON}
    if after == WORDS["too late"]:
        fields |= {"file_delete_state": FileDeleteState.DONE, "error_mask": 0}
    elif after in (WORDS["not checked"], WORDS["not needed"]):
        fields["error_mask"] = 16
    workunit = make_workunit(make_app(), **fields)
    result = put(workunit, before, host)
    if after == WORDS["too late"]:
        canonical = put(workunit, (5, 1, 1), host)
        Workunit.objects.filter(pk=workunit.pk).update(canonical_result=canonical)
    return workunit, result


BY_TRANSITIONER = [(a, b) for a, b, who in listed_transitions() if "transitioner" in who]


@pytest.mark.parametrize(("before", "after"), BY_TRANSITIONER)
def test_the_transitioner_makes_each_of_its_transitions(before: str, after: str, studio: Host) -> None:
    wanted, old = WORDS[after], WORDS[before]
    assert wanted is not None
    if old is None:
        workunit = make_workunit(make_app(), transition_at=NOON)
        transitioner.run(NOON)
        results = workunit.results.all()
    else:
        workunit, result = transitioner_case(old, wanted, studio)
        transitioner.run(WEEK_LATER)
        results = workunit.results.filter(pk=result.pk)
    assert {(r.server_state, r.outcome, r.validate_state) for r in results} == {wanted}


@pytest.mark.parametrize("before", sorted(listed_states()))
@pytest.mark.parametrize("is_decided", [False, True])
def test_the_transitioner_makes_no_others(before: State, is_decided: bool, studio: Host) -> None:
    """From every state, in an open and in a cancelled workunit, an hour and a week later: only what is listed."""
    names = {state: word for word, state in WORDS.items()}
    allowed = {WORDS[b] for a, b in BY_TRANSITIONER if a == names[before]} | {before}
    workunit = make_workunit(make_app(), transition_at=NOON, error_mask=16 if is_decided else 0)
    result = put(workunit, before, studio)
    for now in (NOON, WEEK_LATER):
        transitioner.run(now)
        result.refresh_from_db()
        assert (result.server_state, result.outcome, result.validate_state) in allowed
