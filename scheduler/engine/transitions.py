"""The rules of the transitioner: what becomes of a workunit, by the states of its results. Pure.

docs/reference/states.md lists every state and transition.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from credit.engine.states import (
    AssimilateState,
    FileDeleteState,
    Outcome,
    ServerState,
    ValidateState,
    WorkunitError,
)
from scheduler.engine.lanes import free_lane

_ERRORS: Final = frozenset({Outcome.CLIENT_ERROR, Outcome.VALIDATE_ERROR})
_COUNTING: Final = frozenset({ValidateState.INIT, ValidateState.VALID, ValidateState.INCONCLUSIVE})
_UNDECIDED: Final = frozenset({ValidateState.INIT, ValidateState.INCONCLUSIVE})


@dataclass(frozen=True, slots=True)
class ResultState:
    """A result as the rules see it. ``deadline_at`` is None while it is unsent."""

    id: int
    server_state: int
    outcome: int = Outcome.INIT
    validate_state: int = ValidateState.INIT
    deadline_at: dt.datetime | None = None

    @property
    def is_unchecked(self) -> bool:
        return self.outcome == Outcome.SUCCESS and self.validate_state == ValidateState.INIT


@dataclass(frozen=True, slots=True)
class WorkunitState:
    """A workunit as the rules see it. ``confirm_until``: it waits until then for a result that confirms others."""

    min_quorum: int
    target_nresults: int
    max_error_results: int
    max_total_results: int
    max_success_results: int
    error_mask: int = 0
    has_canonical: bool = False
    assimilate_state: int = AssimilateState.INIT
    file_delete_state: int = FileDeleteState.INIT
    confirm_until: dt.datetime | None = None
    # Whether its results all go to one class of computers or one version; its lane, the version it asks for, its size
    is_bound: bool = False
    lane: int = 0
    app_version_num: int = 0
    size_class: int | None = None


@dataclass(slots=True)
class Decision:
    """The next steps for a workunit.

    ``changes``: (server state, outcome, validate state) of results by id; ``nnew``: results to create. ``timed_out``:
    ids of those that are changed because they were not reported in time. ``freed_lane``: its new lane, if it is no
    longer bound to a class or version; None: nothing changes.
    """

    error_mask: int
    assimilate_state: int
    file_delete_state: int
    need_validate: bool = False
    nnew: int = 0
    changes: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    timed_out: list[int] = field(default_factory=list)
    freed_lane: int | None = None


def decide(workunit: WorkunitState, results: Sequence[ResultState], now: dt.datetime) -> Decision:
    """Decide the next step of a workunit. Deciding again after the step changes nothing more."""
    decision = Decision(workunit.error_mask, workunit.assimilate_state, workunit.file_delete_state)
    results = [_timed_out(result, now, decision) for result in results]
    if not (workunit.has_canonical or workunit.error_mask):
        nnew = 0 if _waits_for_no_other(workunit, results, now) else _wanted(workunit, results)
        decision.error_mask = _errors(workunit, results, nnew)
        if not decision.error_mask:
            decision.nnew = max(0, min(nnew, workunit.max_total_results - len(results)))
    is_decided = workunit.has_canonical or decision.error_mask != 0
    if is_decided:
        _withdraw(results, decision)
        decision.assimilate_state = max(decision.assimilate_state, AssimilateState.READY)
    elif workunit.is_bound and not any(_stands(result) for result in results):
        decision.freed_lane = free_lane(workunit.lane, workunit.app_version_num, workunit.size_class)
    _check(workunit, results, decision)
    is_open = decision.need_validate or any(result.server_state == ServerState.IN_PROGRESS for result in results)
    if workunit.assimilate_state == AssimilateState.DONE and not is_open:
        decision.file_delete_state = max(decision.file_delete_state, FileDeleteState.READY)
    return decision


def _timed_out(result: ResultState, now: dt.datetime, decision: Decision) -> ResultState:
    if result.server_state != ServerState.IN_PROGRESS or result.deadline_at is None or result.deadline_at >= now:
        return result
    decision.changes[result.id] = ServerState.OVER, Outcome.NO_REPLY, ValidateState.INIT
    decision.timed_out.append(result.id)
    return ResultState(result.id, ServerState.OVER, Outcome.NO_REPLY, ValidateState.INIT, result.deadline_at)


def _wanted(workunit: WorkunitState, results: Sequence[ResultState]) -> int:
    """Return how many more results it needs: up to the target and, when a quorum disagrees, one more than there are."""
    nopen = sum(result.server_state != ServerState.OVER for result in results)
    nsuccesses = _nsuccesses(results)
    ninconclusive = sum(result.validate_state == ValidateState.INCONCLUSIVE for result in results)
    target = workunit.target_nresults
    if ninconclusive >= workunit.min_quorum and not any(result.is_unchecked for result in results):
        target = max(target, nsuccesses + 1)
    return max(0, target - nopen - nsuccesses)


def _nsuccesses(results: Sequence[ResultState]) -> int:
    """Count the results that can still be part of a quorum."""
    return sum(result.outcome == Outcome.SUCCESS and result.validate_state in _COUNTING for result in results)


def _waits_for_no_other(workunit: WorkunitState, results: Sequence[ResultState], now: dt.datetime) -> bool:
    """Whether the validator will decide it as it is: nobody confirmed it in time, or nobody gets such jobs now."""
    return workunit.confirm_until is not None and (workunit.confirm_until <= now or _is_unsendable(results))


def _is_unsendable(results: Sequence[ResultState]) -> bool:
    return any(result.outcome == Outcome.COULD_NOT_SEND for result in results)


def _errors(workunit: WorkunitState, results: Sequence[ResultState], nwanted: int) -> WorkunitError:
    """Return why the workunit cannot end well. One that waits to be confirmed ends well without further results."""
    mask = WorkunitError(0)
    if sum(result.outcome in _ERRORS for result in results) > workunit.max_error_results:
        mask |= WorkunitError.TOO_MANY_ERROR_RESULTS
    is_waiting = any(result.is_unchecked for result in results)
    nsuccesses = _nsuccesses(results)
    if nsuccesses > workunit.max_success_results and not is_waiting:
        mask |= WorkunitError.TOO_MANY_SUCCESS_RESULTS
    if workunit.confirm_until is not None:
        return mask
    if _is_unsendable(results):
        mask |= WorkunitError.COULD_NOT_SEND
    ncreatable = max(0, min(nwanted, workunit.max_total_results - len(results)))
    nopen = sum(result.server_state != ServerState.OVER for result in results)
    # There cannot be enough for a quorum any more or, after a disagreement, one more result to decide.
    is_short = nsuccesses + nopen + ncreatable < workunit.min_quorum
    is_stuck = nwanted > 0 and ncreatable + nopen == 0 and not (is_waiting and nsuccesses >= workunit.min_quorum)
    if is_short or is_stuck:
        mask |= WorkunitError.TOO_MANY_TOTAL_RESULTS
    return mask


def _stands(result: ResultState) -> bool:
    """Whether others will be, or may still be, compared with it: it is out, late, or a success that counts."""
    if result.server_state == ServerState.IN_PROGRESS or result.outcome == Outcome.NO_REPLY:
        return True
    return result.outcome == Outcome.SUCCESS and result.validate_state in _COUNTING


def _withdraw(results: Sequence[ResultState], decision: Decision) -> None:
    for result in results:
        if result.server_state == ServerState.UNSENT:
            decision.changes[result.id] = ServerState.OVER, Outcome.DIDNT_NEED, ValidateState.INIT


def _check(workunit: WorkunitState, results: Sequence[ResultState], decision: Decision) -> None:
    """Ask the validator to check successes, or close them if it never will."""
    unchecked = [result for result in results if result.is_unchecked]
    if decision.error_mask and not workunit.has_canonical:
        for result in results:
            if result.outcome == Outcome.SUCCESS and result.validate_state in _UNDECIDED:
                decision.changes[result.id] = ServerState.OVER, Outcome.SUCCESS, ValidateState.NO_CHECK
    elif workunit.file_delete_state != FileDeleteState.INIT:
        # The outputs that it would be compared with are gone.
        for result in unchecked:
            decision.changes[result.id] = ServerState.OVER, Outcome.SUCCESS, ValidateState.TOO_LATE
    elif unchecked and (workunit.has_canonical or _nsuccesses(results) >= workunit.min_quorum):
        decision.need_validate = True
