"""Interpret one project's totals: the work since the last ones, where it starts to count, and what returns (accounting
rules, rules 3 and 4). Handles totals that are only partly numbers. Pure: no clock, no Django.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import reduce
from typing import Final

from accounting.engine.amounts import KINDS, NO_WORK, Totals
from accounting.engine.machine import SECOND_US, allowance
from accounting.engine.returns import Earlier, is_return, not_reached, with_last
from accounting.engine.states import DayFlag, Intake, NoteKind, ProjectState, Report, ReportNote

# A client's totals move once a minute: a difference may include two minutes more than the time between reports.
RETURN_SLACK_US: Final = 120 * SECOND_US
# Credit is worth something only together with the run time it was earned in.
_CREDIT_AND_TIME: Final = (("cpu_ec", "cpu_time"), ("gpu_ec", "gpu_time"))


def in_part(
    intake: Intake, state: ProjectState, report: Report, totals: Totals
) -> tuple[Totals, Totals, Earlier, Totals | None, frozenset[str]]:
    """Like `difference`, where some totals are or were no numbers. Return the totals to store, the result of
    `difference`, and the kinds whose sum starts over.

    A total that is no number stands still. A sum that can never recover, because it contains nan or infinity, starts
    over with the first number.
    """
    unread, lasting = _unreadable_kinds(report)
    broken = unread & (lasting | state.broken)
    last_totals = state.reported if intake.is_same_client and state.listed else None
    totals = _with(totals, unread, last_totals or (intake.honours_handed and state.handed) or NO_WORK)
    begun = state.broken - unread
    if begun and last_totals is not None:
        state = _begun_again(state, begun, totals)
        for kind in sorted(begun):
            _note(intake, state.project_id, DayFlag.SUM_BROKEN, NoteKind.SUM_RESTARTED, detail=kind)
    for unreadable in report.unreadable:
        if unreadable.kind in broken:
            _note(intake, state.project_id, DayFlag.SUM_BROKEN, NoteKind.SUM_BROKEN, detail=unreadable.kind)
        else:
            intake.notes.append(ReportNote(NoteKind.INVALID, state.project_id, detail=unreadable.fault))
    has_unknown_start = last_totals is None and _starts_from_reported(intake, state)
    delta, earlier, restart = difference(intake, state, totals)
    if has_unknown_start or intake.flags.get(state.project_id, 0) & (DayFlag.RESET | DayFlag.RETURNED):
        broken = unread
    return _with(totals, unread, totals.minus(delta)), _with(delta, unread, NO_WORK), earlier, restart, broken


def _unreadable_kinds(report: Report) -> tuple[frozenset[str], frozenset[str]]:
    """Return the kinds that stand still, and those of them whose sum can never recover.

    Credit stands still with its run time. Run time waits for credit that may yet be readable, as it would otherwise be
    used up when the credit comes.
    """
    unread = {unreadable.kind for unreadable in report.unreadable}
    lasting = {unreadable.kind for unreadable in report.unreadable if unreadable.is_lasting}
    for credit, time in _CREDIT_AND_TIME:
        if time in unread:
            unread.add(credit)
            if time in lasting:
                lasting.add(credit)
        elif credit in unread and credit not in lasting:
            unread.add(time)
    return frozenset(unread), frozenset(lasting)


def _begun_again(state: ProjectState, kinds: Collection[str], totals: Totals) -> ProjectState:
    """Return the totals as if these kinds had always had their present value: neither work nor a reset."""
    assert state.reported is not None  # only used for these kinds
    return replace(
        state,
        reported=_with(state.reported, kinds, totals),
        earlier=tuple(_with(state_before, kinds, totals) for state_before in state.earlier),
        restart=None if state.restart is None else _with(state.restart, kinds, totals),
    )


def _with(totals: Totals, kinds: Collection[str], others: Totals) -> Totals:
    """Return the totals with these kinds replaced by those of others."""
    pairs = zip(KINDS, totals, others, strict=True)
    return Totals._make(other if kind in kinds else own for kind, own, other in pairs)


def difference(intake: Intake, state: ProjectState, totals: Totals) -> tuple[Totals, Earlier, Totals | None]:
    """Return the work since the last totals, and the remaining marks W and B (accounting rules 3 and 4)."""
    last, earlier, restart = state.reported, state.earlier, state.restart
    if last is None or not intake.is_same_client:
        return totals.minus(_baseline(intake, state, totals)), (), None
    unused = NO_WORK
    if not state.listed:
        # Attached again: a reset to the base. Its old totals may come back with its former folder.
        base = _baseline(intake, state, totals)
        if base != last:
            earlier = with_last(earlier, last)
        if intake.honours_handed and state.handed is not None and not_reached(base, [state.handed]):
            # A copy of its folder may have started from these, and report later.
            unused = state.handed
        last = restart = base
    delta = totals.minus(last)
    if min(delta) < 0:
        _note(intake, state.project_id, DayFlag.RESET, NoteKind.RESET)
        return NO_WORK, with_last(earlier, last), totals
    returned_to = _returned_to(intake, totals, last, earlier, restart)
    if returned_to:
        _note(intake, state.project_id, DayFlag.RETURNED, NoteKind.RETURNED)
        delta = totals.minus(reduce(Totals.larger, returned_to, last)).larger(NO_WORK)
        # The present totals do not continue the last ones, which may come back in turn.
        earlier, restart = with_last(earlier, last), totals
    earlier = with_last(earlier, unused)
    return delta, earlier, restart if not_reached(totals, earlier) else None


def _returned_to(
    intake: Intake, totals: Totals, last: Totals, earlier: Earlier, restart: Totals | None
) -> tuple[Totals, ...]:
    """Return the earlier totals that have come back, or been passed by those that have."""
    ahead = not_reached(last, earlier)
    if not ahead or restart is None:
        return ()
    if _is_too_much(intake, totals.minus(last)):
        return ahead
    return tuple(totals_before for totals_before in ahead if is_return(totals, last, totals_before, restart))


def _baseline(intake: Intake, state: ProjectState, totals: Totals) -> Totals:
    """Return where a new attachment starts: the client's totals before we could know (accounting rules, rule 3)."""
    handed = state.handed
    if handed is None or _starts_from_reported(intake, state):
        if totals != NO_WORK:
            _note(intake, state.project_id, DayFlag.BASELINE, NoteKind.BASELINE, totals.credit)
        return totals
    if intake.honours_handed and min(totals.minus(handed)) >= 0:
        return handed
    return NO_WORK


def _starts_from_reported(intake: Intake, state: ProjectState) -> bool:
    """Whether a new attachment starts from its reported totals: earlier work is not ours."""
    return state.handed is None or (state.listed and state.reported is None) or not intake.is_same_client


def _note(intake: Intake, project_id: int, flag: DayFlag, kind: NoteKind, amount: int = 0, *, detail: str = "") -> None:
    intake.flag(project_id, flag)
    intake.notes.append(ReportNote(kind, project_id, amount=amount, detail=detail))


def _is_too_much(intake: Intake, delta: Totals) -> bool:
    """Whether a machine cannot have done this since its last report, so that old totals must have come back.

    Ignores credit: clients with several GPUs honestly claim too much of it, and rule 5 ties it to the time.
    """
    most = allowance(intake.capacity, intake.elapsed_us + RETURN_SLACK_US)
    return delta.cpu_time > most.cpu_time or delta.gpu_time > most.gpu_time or delta.njobs * SECOND_US > most.jobs
