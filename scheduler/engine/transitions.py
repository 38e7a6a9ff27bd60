"""What becomes of a workunit, by the states of its results: the rules of the transitioner. Pure.

docs/states.md lists every state and transition. Numbers are BOINC's, as in ``credit.models``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

# ServerState
UNSENT: Final = 2
IN_PROGRESS: Final = 4
OVER: Final = 5
# Outcome
OPEN: Final = 0
SUCCESS: Final = 1
COULD_NOT_SEND: Final = 2
CLIENT_ERROR: Final = 3
NO_REPLY: Final = 4
DIDNT_NEED: Final = 5
VALIDATE_ERROR: Final = 6
CLIENT_DETACHED: Final = 7
# ValidateState
UNCHECKED: Final = 0
VALID: Final = 1
INVALID: Final = 2
NO_CHECK: Final = 3
INCONCLUSIVE: Final = 4
TOO_LATE: Final = 5
# WorkunitError
ERROR_COULD_NOT_SEND: Final = 1
ERROR_TOO_MANY_ERRORS: Final = 2
ERROR_TOO_MANY_SUCCESSES: Final = 4
ERROR_TOO_MANY_RESULTS: Final = 8
ERROR_CANCELLED: Final = 16
# AssimilateState, and FileDeleteState up to DONE
INIT: Final = 0
READY: Final = 1
DONE: Final = 2

_ERRORS: Final = frozenset({CLIENT_ERROR, VALIDATE_ERROR})
_COUNTING: Final = frozenset({UNCHECKED, VALID, INCONCLUSIVE})


@dataclass(frozen=True, slots=True)
class ResultState:
    """A result as the rules see it. ``deadline_at`` is None while it is unsent."""

    id: int
    server_state: int
    outcome: int = OPEN
    validate_state: int = UNCHECKED
    deadline_at: dt.datetime | None = None

    @property
    def is_unchecked(self) -> bool:
        return self.outcome == SUCCESS and self.validate_state == UNCHECKED


@dataclass(frozen=True, slots=True)
class WorkunitState:
    """A workunit as the rules see it."""

    min_quorum: int
    target_nresults: int
    max_error_results: int
    max_total_results: int
    max_success_results: int
    error_mask: int = 0
    has_canonical: bool = False
    assimilate_state: int = INIT
    file_delete_state: int = INIT


@dataclass(slots=True)
class Decision:
    """What is to be done with a workunit.

    ``changes``: (server state, outcome, validate state) of results by id; ``nnew``: results to be made.
    ``timed_out``: ids of those that are changed because they were not reported in time.
    """

    error_mask: int
    assimilate_state: int
    file_delete_state: int
    need_validate: bool = False
    nnew: int = 0
    changes: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    timed_out: list[int] = field(default_factory=list)


def decide(workunit: WorkunitState, results: Sequence[ResultState], now: dt.datetime) -> Decision:
    """The next step of a workunit. Deciding again after the step changes nothing more."""
    decision = Decision(workunit.error_mask, workunit.assimilate_state, workunit.file_delete_state)
    results = [_timed_out(result, now, decision) for result in results]
    if not (workunit.has_canonical or workunit.error_mask):
        nnew = _wanted(workunit, results)
        decision.error_mask = _errors(workunit, results, nnew)
        if not decision.error_mask:
            decision.nnew = min(nnew, workunit.max_total_results - len(results))
    is_decided = workunit.has_canonical or decision.error_mask != 0
    if is_decided:
        _withdraw(results, decision)
        decision.assimilate_state = max(decision.assimilate_state, READY)
    _check(workunit, results, decision)
    is_open = decision.need_validate or any(result.server_state == IN_PROGRESS for result in results)
    if workunit.assimilate_state == DONE and not is_open:
        decision.file_delete_state = max(decision.file_delete_state, READY)
    return decision


def _timed_out(result: ResultState, now: dt.datetime, decision: Decision) -> ResultState:
    if result.server_state != IN_PROGRESS or result.deadline_at is None or result.deadline_at >= now:
        return result
    decision.changes[result.id] = OVER, NO_REPLY, UNCHECKED
    decision.timed_out.append(result.id)
    return ResultState(result.id, OVER, NO_REPLY, UNCHECKED, result.deadline_at)


def _wanted(workunit: WorkunitState, results: Sequence[ResultState]) -> int:
    """How many more results it takes: up to the target and, when a quorum disagrees, one more than there are."""
    nopen = sum(result.server_state != OVER for result in results)
    nsuccesses = _nsuccesses(results)
    ninconclusive = sum(result.validate_state == INCONCLUSIVE for result in results)
    target = workunit.target_nresults
    if ninconclusive >= workunit.min_quorum and not any(result.is_unchecked for result in results):
        target = max(target, nsuccesses + 1)
    return max(0, target - nopen - nsuccesses)


def _nsuccesses(results: Sequence[ResultState]) -> int:
    """Those that can still be part of a quorum."""
    return sum(result.outcome == SUCCESS and result.validate_state in _COUNTING for result in results)


def _errors(workunit: WorkunitState, results: Sequence[ResultState], nwanted: int) -> int:
    """Why the workunit cannot end well: bits of the error mask."""
    mask = 0
    if any(result.outcome == COULD_NOT_SEND for result in results):
        mask |= ERROR_COULD_NOT_SEND
    if sum(result.outcome in _ERRORS for result in results) > workunit.max_error_results:
        mask |= ERROR_TOO_MANY_ERRORS
    is_waiting = any(result.is_unchecked for result in results)
    nsuccesses = _nsuccesses(results)
    if nsuccesses > workunit.max_success_results and not is_waiting:
        mask |= ERROR_TOO_MANY_SUCCESSES
    ncreatable = max(0, min(nwanted, workunit.max_total_results - len(results)))
    nopen = sum(result.server_state != OVER for result in results)
    # Neither enough for a quorum can still come nor, after a disagreement, one more opinion.
    is_short = nsuccesses + nopen + ncreatable < workunit.min_quorum
    is_stuck = nwanted > 0 and ncreatable + nopen == 0 and not (is_waiting and nsuccesses >= workunit.min_quorum)
    if is_short or is_stuck:
        mask |= ERROR_TOO_MANY_RESULTS
    return mask


def _withdraw(results: Sequence[ResultState], decision: Decision) -> None:
    for result in results:
        if result.server_state == UNSENT:
            decision.changes[result.id] = OVER, DIDNT_NEED, UNCHECKED


def _check(workunit: WorkunitState, results: Sequence[ResultState], decision: Decision) -> None:
    """Have the validator look at what has come, or say why nobody will."""
    unchecked = [result for result in results if result.is_unchecked]
    if decision.error_mask and not workunit.has_canonical:
        for result in results:
            if result.outcome == SUCCESS and result.validate_state in (UNCHECKED, INCONCLUSIVE):
                decision.changes[result.id] = OVER, SUCCESS, NO_CHECK
    elif workunit.file_delete_state != INIT:
        # What it would be compared with is gone.
        for result in unchecked:
            decision.changes[result.id] = OVER, SUCCESS, TOO_LATE
    elif unchecked and (workunit.has_canonical or _nsuccesses(results) >= workunit.min_quorum):
        decision.need_validate = True
