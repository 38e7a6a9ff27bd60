"""The rules of a workunit's life: the decision on every possible mix of results."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.states import AssimilateState, Outcome, ServerState, ValidateState, WorkunitError
from scheduler.engine.transitions import Decision, ResultState, WorkunitState, decide

UNSENT, IN_PROGRESS, OVER = ServerState
_, SUCCESS, COULD_NOT_SEND, CLIENT_ERROR, NO_REPLY, DIDNT_NEED, VALIDATE_ERROR, CLIENT_DETACHED = Outcome
UNCHECKED, VALID, INVALID, NO_CHECK, INCONCLUSIVE, TOO_LATE = ValidateState
# The first three of FileDeleteState have the same numbers.
INIT, READY, DONE = AssimilateState

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)

# What a result can be, by a letter.
KINDS: dict[str, tuple[int, int, int]] = {
    "u": (UNSENT, 0, UNCHECKED),
    "p": (IN_PROGRESS, 0, UNCHECKED),
    "l": (IN_PROGRESS, 0, UNCHECKED),  # its deadline is over
    "s": (OVER, SUCCESS, UNCHECKED),
    "v": (OVER, SUCCESS, VALID),
    "i": (OVER, SUCCESS, INVALID),
    "?": (OVER, SUCCESS, INCONCLUSIVE),
    "n": (OVER, SUCCESS, NO_CHECK),
    "t": (OVER, SUCCESS, TOO_LATE),
    "e": (OVER, CLIENT_ERROR, UNCHECKED),
    "r": (OVER, NO_REPLY, UNCHECKED),
    "x": (OVER, VALIDATE_ERROR, UNCHECKED),
    "d": (OVER, CLIENT_DETACHED, UNCHECKED),
    "c": (OVER, COULD_NOT_SEND, UNCHECKED),
    "w": (OVER, DIDNT_NEED, UNCHECKED),
}


def results(kinds: str) -> list[ResultState]:
    made = []
    for number, kind in enumerate(kinds):
        deadline = None if kind == "u" else NOW - HOUR if kind == "l" else NOW + HOUR
        made.append(ResultState(number, *KINDS[kind], deadline))
    return made


def workunit(**fields: Any) -> WorkunitState:
    """Quorum and target 2, at most 3 errors, 6 successes, 10 results, unless fields say otherwise."""
    numbers = {"min_quorum": 2, "target_nresults": 2, "max_error_results": 3, "max_total_results": 10}
    return WorkunitState(**{**numbers, "max_success_results": 6, **fields})


def decided(kinds: str, **fields: Any) -> Decision:
    return decide(workunit(**fields), results(kinds), NOW)


@pytest.mark.parametrize(
    ("kinds", "nnew"),
    [
        ("", 2),
        ("u", 1),
        ("uu", 0),
        ("pu", 0),
        ("s", 1),
        ("sp", 0),
        ("ss", 0),
        ("se", 1),
        ("ee", 2),
        ("lp", 1),
        ("ll", 2),
        ("rr", 2),
        ("sd", 1),
        ("sx", 1),
        ("si", 1),
        ("??", 1),  # disagreement: one more opinion
        ("??p", 0),
        ("??s", 0),  # the validator looks first
        ("???", 1),
        ("?", 1),
    ],
)
def test_results_are_made_up_to_the_target_and_after_a_disagreement(kinds: str, nnew: int) -> None:
    decision = decided(kinds)
    assert (decision.nnew, decision.error_mask) == (nnew, 0)


def test_a_result_that_is_late_counts_as_no_reply() -> None:
    decision = decided("lps")
    assert decision.timed_out == [0]
    assert decision.changes == {0: (OVER, NO_REPLY, UNCHECKED)}


def test_a_deadline_is_over_only_when_it_has_passed() -> None:
    due_now = ResultState(0, IN_PROGRESS, 0, UNCHECKED, NOW)
    assert decide(workunit(), [due_now], NOW).timed_out == []
    assert decide(workunit(), [due_now], NOW + dt.timedelta(microseconds=1)).timed_out == [0]


@pytest.mark.parametrize(
    ("kinds", "fields", "is_needed"),
    [
        ("s", {}, False),
        ("ss", {}, True),
        ("sp", {}, False),
        ("s?", {}, True),
        ("si", {}, False),
        ("s", {"min_quorum": 1, "target_nresults": 1}, True),
        ("vs", {"has_canonical": True}, True),  # a late one of a decided workunit
        ("vp", {"has_canonical": True}, False),
        ("??", {}, False),
    ],
)
def test_the_validator_is_asked_when_a_quorum_has_come(kinds: str, fields: dict[str, Any], is_needed: bool) -> None:
    assert decided(kinds, **fields).need_validate is is_needed


@pytest.mark.parametrize(
    ("kinds", "fields", "error"),
    [
        ("eee", {}, 0),
        ("eeee", {}, WorkunitError.TOO_MANY_ERROR_RESULTS),
        ("eexx", {}, WorkunitError.TOO_MANY_ERROR_RESULTS),
        ("rrrr", {}, 0),  # silence is no error of the job
        ("rrrrrrrrr", {}, WorkunitError.TOO_MANY_TOTAL_RESULTS),  # 1 more makes 10, but the quorum is 2
        ("rrrrrrrr", {}, 0),
        ("rrrrrrrrs", {}, 0),
        ("rrrrrrrrrs", {}, WorkunitError.TOO_MANY_TOTAL_RESULTS),
        ("rrrrrrrrss", {}, 0),  # the validator has not looked yet
        ("rrrrrrrr??", {}, WorkunitError.TOO_MANY_TOTAL_RESULTS),  # an eleventh would have to decide
        ("??????", {}, 0),
        ("???????", {}, WorkunitError.TOO_MANY_SUCCESS_RESULTS),
        ("??????s", {}, 0),  # the validator has not looked yet
        ("c", {}, WorkunitError.COULD_NOT_SEND),
        ("eeee", {"has_canonical": True}, 0),  # it is decided: errors do not matter any more
    ],
)
def test_a_workunit_that_cannot_end_well_ends_with_its_reason(kinds: str, fields: dict[str, Any], error: int) -> None:
    decision = decided(kinds, **fields)
    assert decision.error_mask == error
    assert (decision.assimilate_state == READY) is (error != 0 or "has_canonical" in fields)
    assert not (error and decision.nnew)


def test_what_is_unsent_is_withdrawn_once_the_workunit_is_decided() -> None:
    assert decided("vvu", has_canonical=True).changes == {2: (OVER, DIDNT_NEED, UNCHECKED)}
    assert decided("eeeeu").changes == {4: (OVER, DIDNT_NEED, UNCHECKED)}
    assert decided("uup", error_mask=WorkunitError.CANCELLED).changes == dict.fromkeys((0, 1), (OVER, DIDNT_NEED, 0))


def test_successes_of_a_failed_workunit_stay_unchecked() -> None:
    assert decided("eeees?v").changes == {4: (OVER, SUCCESS, NO_CHECK), 5: (OVER, SUCCESS, NO_CHECK)}


def test_a_success_after_the_files_are_gone_is_too_late() -> None:
    decision = decided("vvs", has_canonical=True, assimilate_state=DONE, file_delete_state=DONE)
    assert decision.changes == {2: (OVER, SUCCESS, TOO_LATE)}
    assert not decision.need_validate


@pytest.mark.parametrize(
    ("kinds", "assimilate_state", "file_delete_state"),
    [("vv", INIT, INIT), ("vv", READY, INIT), ("vv", DONE, READY), ("vvp", DONE, INIT), ("vvl", DONE, READY)],
)
def test_files_go_once_it_is_assimilated_and_nothing_is_out(
    kinds: str, assimilate_state: int, file_delete_state: int
) -> None:
    decision = decided(kinds, has_canonical=True, assimilate_state=assimilate_state)
    assert decision.file_delete_state == file_delete_state
    assert decision.assimilate_state == max(assimilate_state, READY)


def apply(state: WorkunitState, rows: list[ResultState], decision: Decision) -> tuple[WorkunitState, list[ResultState]]:
    """The workunit after a step, as the tables would hold it."""
    after = [
        ResultState(row.id, *decision.changes.get(row.id, (row.server_state, row.outcome, row.validate_state)),
                    row.deadline_at)
        for row in rows
    ]  # fmt: skip
    after += [ResultState(len(rows) + number, UNSENT) for number in range(decision.nnew)]
    new = replace(
        state,
        error_mask=decision.error_mask,
        assimilate_state=decision.assimilate_state,
        file_delete_state=decision.file_delete_state,
    )
    return new, after


ALL_MIXES = ["".join(mix) for n in range(5) for mix in itertools.combinations_with_replacement("ulpsv?iexrdwc", n)]


@pytest.mark.parametrize("has_canonical", [False, True])
@pytest.mark.parametrize("quorum", [1, 2, 3])
def test_every_mix_of_up_to_four_results_has_a_next_step_and_only_one(has_canonical: bool, quorum: int) -> None:
    # 13 kinds, 0 to 4 of them: 2,380 mixes. None may be left without anything to wait for.
    for kinds in ALL_MIXES:
        if "v" in kinds and not has_canonical:
            continue  # a valid result makes a canonical one
        state = workunit(min_quorum=quorum, target_nresults=quorum, has_canonical=has_canonical, max_total_results=5)
        decision = decide(state, results(kinds), NOW)
        after, rows = apply(state, results(kinds), decision)
        again = decide(after, rows, NOW)
        assert not again.changes and not again.nnew, kinds
        assert (again.error_mask, again.need_validate) == (decision.error_mask, decision.need_validate), kinds
        waits = any(row.server_state != OVER for row in rows) or decision.need_validate
        assert waits or after.assimilate_state == READY, kinds
        assert len(rows) <= max(5, len(kinds)), kinds


STEPS = st.lists(st.sampled_from("sendtxl"), min_size=1, max_size=60)


@given(STEPS, st.integers(1, 3), st.integers(0, 2))
def test_whatever_computers_and_validator_do_every_workunit_ends(steps: list[str], quorum: int, more: int) -> None:
    state = workunit(min_quorum=quorum, target_nresults=quorum + more, max_total_results=8)
    rows: list[ResultState] = []
    for number in range(300):
        decision = decide(state, rows, NOW)
        state, rows = apply(state, rows, decision)
        assert len(rows) <= 8
        if state.assimilate_state == READY:
            assert state.error_mask or state.has_canonical
            assert not any(row.server_state == UNSENT for row in rows)
            return
        state, rows = happen(state, rows, steps[number % len(steps)], decision.need_validate)
    raise AssertionError("still not decided after 300 steps")


def happen(
    state: WorkunitState, rows: list[ResultState], step: str, need_validate: bool
) -> tuple[WorkunitState, list[ResultState]]:
    """The validator decides if it is asked to ("t": finds agreement, else not); else one open result ends."""
    if need_validate:
        checked = VALID if step == "t" else INCONCLUSIVE
        rows = [ResultState(r.id, r.server_state, r.outcome, checked if r.outcome == SUCCESS else 0) for r in rows]
        return replace(state, has_canonical=checked == VALID), rows
    outcome = {"s": SUCCESS, "t": SUCCESS, "e": CLIENT_ERROR, "n": NO_REPLY, "d": CLIENT_DETACHED, "x": VALIDATE_ERROR}
    for index, row in enumerate(rows):
        if row.server_state != OVER:
            rows = rows.copy()
            rows[index] = (
                ResultState(row.id, IN_PROGRESS, 0, 0, NOW - HOUR)
                if step == "l"
                else ResultState(row.id, OVER, outcome[step])
            )
            break
    return state, rows
