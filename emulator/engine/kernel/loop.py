"""The loop of a run: emulator.engine.run in arrays. It returns to Python for rare things."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from emulator.engine.kernel import choice, contact, debt, decide, rec
from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.jobs import finish, set_cpu_rate, stop
from emulator.engine.kernel.queues import DEBT
from emulator.engine.server import MAX_JOBS_PER_RPC
from emulator.engine.table import Table


class Pause(IntEnum):
    """Why the loop returned."""

    DONE = 0
    EVENT = 1  # an event of the scenario is due
    STATE = 2  # the computer's state may change now
    SAMPLE = 3
    FULL = 4  # an array might be too small for the next step


# Where it continues.
NEXT: Final = 0
AFTER_EVENT: Final = 1
AFTER_STATE: Final = 2

_DONE: Final = int(Pause.DONE)
_EVENT: Final = int(Pause.EVENT)
_STATE: Final = int(Pause.STATE)
_SAMPLE: Final = int(Pause.SAMPLE)
_FULL: Final = int(Pause.FULL)
OTHER_ROWS: Final = 16  # rows of a step that are about no job


@compiled
def has_room(t: Table) -> bool:
    """Whether no array can overflow in one step."""
    run = t.run[0]
    if run.jobs + MAX_JOBS_PER_RPC + 1 > len(t.jobs):
        return False
    rows = step_rows(t)
    return bool(
        run.decisions + rows <= t.records.shape[1]
        and run.blocks + rows <= t.records.shape[1]
        and run.rpcs + rows <= t.records.shape[1]
        and run.misses + rows <= t.records.shape[1]
    )


@compiled
def step_rows(t: Table) -> int:
    """The most rows of any kind in one step: a job starts, stops, changes its speed and is settled twice at most, each
    with a row for itself, one for its CPUs, and one for each of its lanes; the lanes of all jobs together are no more
    than there are.
    """
    return int(8 * (t.run[0].jobs + t.run[0].lanes) + 4 * len(t.kinds) + len(t.offers) + len(t.projects) + OTHER_ROWS)


@making_arrays
def compact(t: Table) -> None:
    """Removes the rows of reported jobs."""
    run = t.run[0]
    new_rows = np.zeros(run.jobs, np.int64)
    place = 0
    for j in range(run.jobs):
        if not t.jobs[j].gone:
            new_rows[j] = place
            if place != j:
                t.jobs[place] = t.jobs[j]
            place += 1
    run.jobs = place
    run.done = 0
    run.judged_version = -1
    for i in range(run.running):
        t.lists[i].running = new_rows[t.lists[i].running]
    for i in range(run.begun):
        t.lists[i].begun = new_rows[t.lists[i].begun]
    for i in range(run.ready):
        t.lists[i].ready = new_rows[t.lists[i].ready]
    for i in range(run.tasks):
        t.lists[i].task_jobs = new_rows[t.lists[i].task_jobs]


@compiled
def _end_jobs(t: Table, now: float) -> None:
    """Finishes the jobs that end now, in order of their ends."""
    run = t.run[0]
    while True:
        first = -1
        for i in range(run.running):
            j = t.lists[i].running
            job = t.jobs[j]
            if job.end_secs <= now and (
                first < 0
                or job.end_secs < t.jobs[first].end_secs
                or (job.end_secs == t.jobs[first].end_secs and job.id < t.jobs[first].id)
            ):
                first = j
        if first < 0:
            return
        finish(t, first, now)
        if t.jobs[first].left_at_error:
            contact.failed(t, first, now)
        contact.finished(t, first, now)
        if run.policy == DEBT:
            debt.job_ended(t, first)


@compiled
def _stop_inactive(t: Table, now: float) -> None:
    """Stops the jobs of kinds that may not compute."""
    run = t.run[0]
    run.moves += 1
    count = 0
    for i in range(run.running):
        j = t.lists[i].running
        kind = t.kinds[t.jobs[j].kind]
        if kind.active:
            t.lists[count].running = j
            count += 1
        else:
            stop(t, j, now, kind.stop_reason)
    run.running = count
    set_cpu_rate(t, now)


@compiled
def _next_rpc(t: Table) -> None:
    """When a server is next contacted, or the policy asked whom to contact."""
    run = t.run[0]
    if run.reachable:
        run.rpc_at = max(min(run.fetch_at, run.report_at_secs), run.free_secs)
    else:
        run.rpc_at = float("inf")


@compiled
def _choose(t: Table, now: float) -> None:
    """Lets the policy choose which jobs run."""
    if decide.select(t, now):
        choice.apply(t, now)


@compiled
def _fetch(t: Table, now: float) -> None:
    """Makes the policy's work request, if it has one."""
    run = t.run[0]
    p, reason, kind = decide.fetch(t, now)
    if p >= 0:
        contact.rpc(t, p, True, reason, kind, now)
        contact.plan(t)
        run.fetch_at = now


@compiled
def _first_end(t: Table) -> float:
    first = float("inf")
    for i in range(t.run[0].running):
        first = min(first, t.jobs[t.lists[i].running].end_secs)
    return first


@compiled
def _begin_step(t: Table) -> int:
    """Moves to the next time at which something happens, and ends jobs; returns 0 if only a look was put off, 1 for a
    step, 2 if the run is over.
    """
    run = t.run[0]
    end_at = _first_end(t)
    next_at = min(min(end_at, run.choose_at), min(run.state_at, min(run.event_at, run.rpc_at)))
    now = max(run.now, next_at)
    if now >= run.duration_secs:
        return 2
    only_fetch = end_at > now and run.state_at > now and run.event_at > now and run.report_at_secs > now
    if run.pending and run.rpc_at <= now and run.fetch_at <= now and only_fetch:
        rec.resolve(t)
        _next_rpc(t)
        if run.rpc_at > now and run.choose_at > now:
            return 0
    run.now = now
    run.events += 1
    decide.accrue(t, now)
    run.changed = end_at <= now
    if run.changed:
        _end_jobs(t, now)
    return 1


@compiled
def _end_step(t: Table) -> None:
    """Chooses jobs and makes RPCs."""
    run = t.run[0]
    now = run.now
    if run.changed or run.choose_at <= now:
        _choose(t, now)
    if run.changed:
        run.pending = 0
        run.fetch_at = now
        run.rpc_at = run.free_secs if run.reachable else float("inf")
    if run.rpc_at <= now:
        version = run.version
        if contact.reply(t, now) or (run.report_at_secs <= now and contact.report(t, now)):
            run.pending = 0
            run.fetch_at = now
        else:
            if run.pending and run.fetch_at <= now:
                rec.resolve(t)
            if run.fetch_at <= now:
                _fetch(t, now)
        if run.version != version:
            _choose(t, now)
        _next_rpc(t)


@compiled
def advance(t: Table) -> int:
    """Runs until Python has something to do; returns what (Pause)."""
    run = t.run[0]
    while True:
        if run.phase == NEXT:
            if run.sample_at <= run.now and run.events:
                return _SAMPLE
            if run.done > 64 + run.jobs // 2:
                compact(t)
            if not has_room(t):
                return _FULL
            began = _begin_step(t)
            if began == 2:
                return _DONE
            if began == 0:
                continue
            if run.event_at <= run.now:
                run.phase = AFTER_EVENT
                return _EVENT
            run.phase = AFTER_EVENT
        if run.phase == AFTER_EVENT:
            if run.state_at <= run.now:
                run.phase = AFTER_STATE
                return _STATE
        else:
            _stop_inactive(t, run.now)
            run.changed = 1
        run.phase = NEXT
        _end_step(t)
