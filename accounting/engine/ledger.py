"""The ledger's rules: what one account-manager request changes. Pure: no clock, no database.

A client sends, per project, six totals since it attached (``amounts.KINDS``). We keep the last ones and
credit the differences, as far as the machine can have done the work. The rules and an example are in
docs/explanation/accounting.md; the comments below cite them as "accounting rules, rule N".

State of a host: when it last reported (our clock), what its own clock said then, and its *level*: five
allowances (``machine.Allowance``) that fill with time at the machine's full speed, up to 30 days of it.

State of a host at a project: ``reported``, the last totals (R in the rules); ``earlier``, those from before each
reset, which may come back (W), and ``restart``, the totals at the last reset or since then, while R is below one of W
(B); ``credited`` (C), ``pending`` (Q: not covered by the allowance yet) and ``dropped``, whose sum is all the work ever
reported;
``handed``, the totals that we gave a client to start from and have not built upon; ``listed``, whether the last
request named the project.

``settle`` applies the rules in order:

1. A message older than the newest one changes nothing.
2. The level fills by the time since the last report.
3. A new attachment starts from a base: what the client had before we could know. It is a reset to that base if we know
   totals of this client.
4. Else the difference to the last totals counts. Falling totals are a reset and count nothing; totals that
   come back after a reset count only above where they were.
5. Credit is bounded by run time times speed.
6. What the level covers is credited, the same fraction for all projects; the rest waits.
7. What is left of the level pays what waits; what waits beyond one day's work is dropped.
8. Results: the rows as they become, and what to add to today's.

Units: micro-credits, micro-seconds and whole jobs; clocks are micro-seconds since 1970, the client's is in
seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Final

from accounting.engine.amounts import NO_WORK, Processor, Totals
from accounting.engine.differences import difference, in_part
from accounting.engine.hardware_models import DEFAULT_FPOPS, NOTHING_USUAL, Replaced, Usual, judge
from accounting.engine.machine import (
    DAY_US,
    HOUR_US,
    NO_ALLOWANCE,
    Allowance,
    Capacity,
    Ceilings,
    Machine,
    allowance,
    larger_capacity,
    most_cpu_credit,
    most_gpu_credit,
)
from accounting.engine.sharing import distribute
from accounting.engine.states import (
    NO_KINDS,
    DayFlag,
    HostState,
    Intake,
    LedgerChanges,
    NoteKind,
    ProjectState,
    Report,
    ReportNote,
)

STALE_WITHIN_US: Final = HOUR_US
LEVEL_KEPT_US: Final = 30 * DAY_US


def offer(state: ProjectState | None, project_id: int) -> ProjectState:
    """Return the row of a project that our reply offers and that the request did not list.

    The totals handed out stay the same until the client lists the project with totals: a reply may get lost, and the
    next one must not move the base. The reply must send ``handed``, not ``credited``.
    """
    if state is None:
        return ProjectState(project_id, handed=NO_WORK)
    if state.handed is not None:
        return state
    return replace(state, handed=state.credited)


def settle(
    host: HostState,
    projects: Mapping[int, ProjectState],
    reports: Sequence[Report],
    *,
    now_us: int,
    client_now: float | None,
    old: Machine | None,
    new: Machine | None,
    is_same_client: bool,
    own_last_at_us: int | None = None,
    honours_handed: bool,
    ceilings: Ceilings,
    usual: Usual = NOTHING_USUAL,
) -> LedgerChanges:
    """Compute the changes that a request with these reports makes; the arguments are not modified.

    ``projects`` has every row of the host, including projects that the request does not list. ``old`` and ``new`` are
    the hardware as stored and as this request describes it. ``is_same_client``: the request comes from the client whose
    totals are in ``projects``; otherwise its own totals do not continue them. ``own_last_at_us``: when it last
    reported, if another client has reported for the host since. ``honours_handed``: the client starts its counters from
    the totals of our reply. ``usual``: how fast processors of known models are.
    """
    if client_now is not None and not isfinite(client_now):
        client_now = None
    if _is_stale(host, now_us, client_now):
        return LedgerChanges(True, host)
    old, replaced_before = judge(old, usual)
    new, replaced = judge(new, usual)
    current = old if new is None else new
    replaced = replaced_before if new is None else replaced
    machine = larger_capacity(old, new, ceilings)
    # A new host has no known working time. If our clock was set back, no time has passed.
    since_us = now_us if host.last_at_us is None else min(host.last_at_us, now_us)
    level = NO_ALLOWANCE if host.last_at_us is None else _grown(host.level, machine, since_us, now_us)
    own_us = now_us - (since_us if own_last_at_us is None else min(own_last_at_us, since_us))
    intake = Intake(machine, own_us, is_same_client, honours_handed, dict(projects))
    intake.has_replaced_gpu = any(gpu.processor is Processor.GPU for gpu in replaced)
    _take_reports(intake, reports)
    level, credits = distribute(intake, level)
    _tell_replaced(intake, replaced, credits)
    if current is not None and current.p_fpops == DEFAULT_FPOPS:
        for project_id in credits:
            intake.flag(project_id, DayFlag.SPEED_UNKNOWN)
    return LedgerChanges(
        False,
        HostState(now_us, client_now if client_now is not None else host.client_now, level),
        [row for project_id, row in intake.rows.items() if row != projects.get(project_id)],
        credits,
        intake.flags,
        intake.notes,
    )


def _tell_replaced(intake: Intake, replaced: Sequence[Replaced], credits: Mapping[int, Totals]) -> None:
    """Mark days whose credit was computed with speeds other than the computer's own, and say which."""
    if not replaced or not credits:
        return
    for project_id in credits:
        intake.flag(project_id, DayFlag.SPEED_REPLACED)
    for gpu in replaced:
        detail = f"{gpu.processor.value}|{gpu.reported}|{gpu.assumed}|{gpu.model}"
        intake.notes.append(ReportNote(NoteKind.SPEED_REPLACED, None, detail=detail))


def _is_stale(host: HostState, now_us: int, client_now: float | None) -> bool:
    """Whether a newer message of this client has been seen (accounting rules, rule 1).

    Only within an hour, either way: a clock that was set back, the client's or ours, must not lock a host out.
    """
    if client_now is None or host.client_now is None or host.last_at_us is None:
        return False
    return client_now < host.client_now and abs(now_us - host.last_at_us) < STALE_WITHIN_US


def _grown(level: Allowance, machine: Capacity, since_us: int, now_us: int) -> Allowance:
    """The allowance after some time, at most 30 days' worth (accounting rules, rule 2)."""
    more = allowance(machine, now_us, since_us)
    most = allowance(machine, LEVEL_KEPT_US)
    return Allowance(
        min(level.cpu_time + more.cpu_time, most.cpu_time),
        min(level.gpu_time + more.gpu_time, most.gpu_time),
        min(level.cpu_ec + more.cpu_ec, most.cpu_ec),
        min(level.gpu_ec + more.gpu_ec, most.gpu_ec),
        min(level.jobs + more.jobs, most.jobs),
    )


def _take_reports(intake: Intake, reports: Sequence[Report]) -> None:
    """Move each listed project to its new totals and determine the work done (accounting rules 3 to 5)."""
    rows = intake.rows
    seen: set[int] = set()
    for report in reports:
        project_id = report.project_id
        if project_id in seen:
            continue
        seen.add(project_id)
        state = rows.get(project_id) or ProjectState(project_id)
        if report.totals is None:
            rows[project_id] = _without_totals(intake, state, report.fault)
            continue
        totals, broken = report.totals, NO_KINDS
        if report.unreadable or state.broken:
            totals, delta, earlier, restart, broken = in_part(intake, state, report, report.totals)
        else:
            delta, earlier, restart = difference(intake, state, totals)
        dropped = state.dropped
        if delta != NO_WORK:
            earned = _limited_by_run_time(intake, project_id, delta)
            if earned is not delta:
                dropped = dropped.plus(delta.minus(earned))
            if earned != NO_WORK:
                intake.deltas[project_id] = earned
        rows[project_id] = ProjectState(
            project_id, totals, earlier, state.credited, state.pending, dropped, None, True, restart, broken
        )
    for project_id, state in rows.items():
        if project_id in seen:
            continue
        if not intake.is_same_client:
            rows[project_id] = replace(_without_known_totals(state), listed=False)
        elif state.listed:
            rows[project_id] = replace(state, listed=False)


def _without_totals(intake: Intake, state: ProjectState, fault: str | None) -> ProjectState:
    """Keep the last totals of a project that is listed without usable totals.

    But not if they are another client's: this one's first totals will be its starting point.
    """
    if fault is not None:
        intake.notes.append(ReportNote(NoteKind.INVALID, state.project_id, detail=fault))
    if intake.is_same_client:
        # A faulty first report of an attachment does not move its base: the client's work may be ours.
        return state if fault is not None else replace(state, listed=True)
    return replace(_without_known_totals(state), listed=True)


def _without_known_totals(state: ProjectState) -> ProjectState:
    return replace(state, reported=None, earlier=(), restart=None, broken=NO_KINDS)


def _limited_by_run_time(intake: Intake, project_id: int, delta: Totals) -> Totals:
    """Cut the difference's credit to what its run time is worth (accounting rules, rule 5)."""
    most_gpu_ec = most_gpu_credit(intake.capacity, delta.gpu_time)
    cpu_ec = min(delta.cpu_ec, most_cpu_credit(intake.capacity, delta.cpu_time))
    gpu_ec = min(delta.gpu_ec, most_gpu_ec)
    if excess := delta.cpu_ec - cpu_ec:
        _note_excess(intake, project_id, DayFlag.CAPPED, NoteKind.EC_ABOVE_TIME, "cpu_ec", excess)
    if excess := delta.gpu_ec - gpu_ec:
        # Honest clients multiply the credit of a GPU by the number of GPUs.
        is_known = delta.gpu_ec <= most_gpu_ec * intake.capacity.gpu_instances
        # Excess credit from an unbelieved peak speed does not mean that the computer claims too much.
        capped = DayFlag.SPEED_REPLACED if intake.has_replaced_gpu else DayFlag.CAPPED
        flag = DayFlag.SEVERAL_GPUS if is_known else capped
        kind = NoteKind.SEVERAL_GPUS if is_known else NoteKind.EC_ABOVE_TIME
        _note_excess(intake, project_id, flag, kind, "gpu_ec", excess)
    if cpu_ec == delta.cpu_ec and gpu_ec == delta.gpu_ec:
        return delta
    return delta._replace(cpu_ec=cpu_ec, gpu_ec=gpu_ec)


def _note_excess(
    intake: Intake, project_id: int, flag: DayFlag, note: NoteKind, kind_of_amount: str, excess: int
) -> None:
    intake.flag(project_id, flag)
    intake.notes.append(ReportNote(note, project_id, kind_of_amount, excess, kind_of_amount))
