"""The round-robin simulation: a forecast for the present jobs if the client ran them by weighted round-robin. All later
policies start from it (client scheduling document; emulator document, section 7).

Its results are, per kind of processor, the idle instances now, the time up to which all are busy ("saturated"), and the
shortfall up to the end of the buffer; and which jobs would miss their deadline. An instance, or a part of one, is idle
only while no job waits that is just too large for it. Saturated times are exact up to the end of the buffer.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from emulator.engine.kernel import turns
from emulator.engine.kernel.bounds import (
    CERTAIN_SECS,
    DOUBT,
    SLACK_SECS,
    all_done_secs,
    early_secs,
    longest_wait_secs,
    may_miss_deadlines,
)
from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.jobs import left_secs
from emulator.engine.kernel.queues import (
    NONE_FREE,
    Queues,
    add_to_least,
    allowed_devices,
    goes_beyond_text,
    make_queues,
    new_queues,
)
from emulator.engine.table import SNAPSHOT, Floats, Ints, Table

LATE: Final = 1e-6  # a job late by less is not late: rounding
IN_TIME: Final = 0
MISSED: Final = 1
IN_DOUBT: Final = 2


@making_arrays
def forecast(t: Table, now: float) -> None:
    """Finds idle instances, saturated times and shortfalls of each kind, unless they are known."""
    run = t.run[0]
    if run.sim_at == now and run.sim_version == run.version:
        return
    run.sim_at = now
    run.sim_version = run.version
    _forecast(t, make_queues(t, now, 0), len(t.kinds))


@compiled
def _forecast(t: Table, q: Queues, kinds: int) -> None:
    """Simulates, and stores the results for the first kinds."""
    t.run[0].steps += turns.forecast(q, t.run[0].buffer_total_secs)
    for k in range(kinds):
        kind, simulated = t.kinds[k], q.kinds[k]
        kind.saturated_secs = simulated.saturated_secs if kind.present else math.inf
        kind.shortfall_secs = simulated.shortfall_secs if kind.present else 0.0
        kind.idle = simulated.idle if kind.present else 0.0


@making_arrays
def forecast_beside_wide(t: Table, now: float) -> None:
    """Finds the CPUs that are idle beside jobs that need more of them than are free, replacing the result of
    `forecast`.
    """
    q = make_queues(t, now, 0)
    q.head[0].keeps_to_cpus = 1
    _forecast(t, q, 1)
    t.run[0].sim_version = -1


@making_arrays
def take_snapshot(t: Table, now: float) -> None:
    """Stores the initial state of a forecast made now."""
    q = make_queues(t, now, 0)
    run = t.run[0]
    run.snapshot = len(q.jobs)
    for i in range(len(q.jobs)):
        row, job = t.records[SNAPSHOT, i], q.jobs[i]
        row[0], row[1], row[2] = job.kind, job.project, job.left
        row[3], row[4], row[5] = job.usage, job.cpus, job.counted_flops
    for p in range(len(q.projects)):
        row = t.records[SNAPSHOT, run.snapshot + p]
        row[0], row[1], row[2] = q.projects[p].rank, q.projects[p].unit, q.projects[p].tier
    run.pending = 1
    run.pending_at = now


@making_arrays
def forecast_of_snapshot(t: Table) -> None:
    """Finds what a forecast would have found then."""
    q = new_queues(t, t.run[0].snapshot, 0)
    for i in range(len(q.jobs)):
        row, job = t.records[SNAPSHOT, i], q.jobs[i]
        job.kind, job.project, job.left = int(row[0]), int(row[1]), row[2]
        job.usage, job.cpus, job.counted_flops = row[3], row[4], row[5]
    for p in range(len(q.projects)):
        row = t.records[SNAPSHOT, len(q.jobs) + p]
        q.projects[p].rank, q.projects[p].unit, q.projects[p].tier = row[0], row[1], int(row[2])
    _forecast(t, q, len(t.kinds))
    t.run[0].sim_version = -1


@making_arrays
def judge(t: Table, now: float) -> None:
    """Finds the jobs that would miss their deadlines, by deadline, and the margins of those that just do not."""
    run = t.run[0]
    if run.judged_at == now and run.judged_version == run.version:
        return
    run.judged_at = now
    run.judged_version = run.version
    run.margins = 0
    for j in range(run.jobs):
        t.jobs[j].sim_end_secs = np.nan
    q = make_queues(t, now, 0)
    n = len(q.jobs)
    verdict = np.zeros(n, np.int64)
    any_doubtful = False
    early = early_secs(t)
    needs_all = run.limited or run.no_edf_simulation
    if goes_beyond_text(t):
        for i in range(n):
            q.jobs[i].deadline_secs -= DOUBT * q.jobs[i].left  # it may take longer than estimated
    for k in range(len(t.kinds)):
        t.kinds[k].missed = 0
        wait = longest_wait_secs(t, q, k)
        all_done_at = now + all_done_secs(t, k, now)
        for i in range(n):
            job = q.jobs[i]
            spare = job.deadline_secs - early - now
            if job.kind != k or job.deadline_secs - early >= all_done_at:
                continue
            # One with more than a period to spare causes no choice before the next one.
            if job.left + wait + run.period_secs <= spare and not needs_all:
                continue
            if job.left > spare + CERTAIN_SECS and not needs_all:
                verdict[i] = MISSED
            else:
                verdict[i] = IN_DOUBT
                any_doubtful = True
    if any_doubtful:
        _simulate_doubtful(t, q, verdict, now)
    if run.overcounted_misses or run.jobs_kept_by_deadline:
        _follow_quirks(t, q, verdict)
    first = 0
    for k in range(len(t.kinds)):
        t.kinds[k].first_missed = first
        for i in range(n):
            if verdict[i] == MISSED and q.jobs[i].kind == k:
                _add_missed(t, q.jobs[i].row, k, now)
        first += t.kinds[k].missed


@making_arrays
def _simulate_doubtful(t: Table, q: Queues, verdict: Ints, now: float) -> None:
    run = t.run[0]
    early = early_secs(t)
    order = np.argsort(q.jobs["deadline_secs"], kind="mergesort")
    is_apart = np.zeros(len(t.kinds), np.bool_)
    for k in range(1, len(t.kinds)):
        if not run.limited and not run.no_edf_simulation and _runs_apart(q, k):
            is_apart[k] = True
            _find_ends(t, q, k, order, verdict, is_apart, now)
    _find_ends(t, q, turns.ALL_KINDS, order, verdict, is_apart, now)
    for i in order:
        if verdict[i] != IN_DOUBT:
            continue
        job, end = q.jobs[i], t.jobs[q.jobs[i].row].sim_end_secs
        if end > job.deadline_secs - early + LATE:
            verdict[i] = MISSED
        else:
            t.lists[run.margins].margin_secs = job.deadline_secs - early - end
            t.lists[run.margins].margin_jobs = job.row
            run.margins += 1


@making_arrays
def _runs_apart(q: Queues, k: int) -> bool:
    """Whether nothing of other kinds changes which jobs run on the GPUs of a kind: GPUs come before CPUs, and the
    projects with jobs for them have no other jobs, which would affect their ranks.
    """
    has_jobs = np.zeros(len(q.projects), np.bool_)
    for i in range(len(q.jobs)):
        if q.jobs[i].kind == k:
            has_jobs[q.jobs[i].project] = True
    for i in range(len(q.jobs)):
        if q.jobs[i].kind != k and has_jobs[q.jobs[i].project]:
            return False
    return True


@making_arrays
def _find_ends(t: Table, q: Queues, only_kind: int, order: Ints, verdict: Ints, is_apart: Any, now: float) -> None:
    """Simulates until it is decided for the doubtful jobs of one kind whether they are late, or for those of all kinds
    that are not examined separately.
    """
    watched = np.empty(len(order), np.int64)
    until = np.empty(len(order))
    count = 0
    for i in order:
        job = q.jobs[i]
        is_asked = job.kind == only_kind if only_kind != turns.ALL_KINDS else not is_apart[job.kind]
        if is_asked and verdict[i] == IN_DOUBT:
            watched[count] = i
            until[count] = job.deadline_secs - early_secs(t) - now
            count += 1
    if not count:
        return
    if t.run[0].no_edf_simulation:
        until[:] = until[count - 1]
    t.run[0].steps += turns.find_ends(q, only_kind, watched[:count], until[:count], not t.run[0].no_edf_simulation)
    for place in range(count):
        job = q.jobs[watched[place]]
        t.jobs[job.row].sim_end_secs = math.inf if math.isnan(job.ends) else now + job.ends


@compiled
def _follow_quirks(t: Table, q: Queues, verdict: Ints) -> None:
    """Applies BOINC's rules beyond the text: jobs that ran for their deadline continue to while their project has
    misses, and as many jobs run for their deadline as the project has misses, its earliest, missed or not.
    """
    run = t.run[0]
    for k in range(len(t.kinds)):
        for p in range(len(t.projects)):
            count = 0
            for i in range(len(verdict)):
                if q.jobs[i].kind == k and q.jobs[i].project == p and verdict[i] == MISSED:
                    count += 1
            if not count:
                continue
            for i in range(len(verdict)):
                job = t.jobs[q.jobs[i].row]
                if q.jobs[i].kind != k or q.jobs[i].project != p or verdict[i] == MISSED:
                    continue
                if run.jobs_kept_by_deadline and job.started and job.by_deadline:
                    verdict[i] = MISSED
                    count += 1
            if run.overcounted_misses:
                _miss_earliest(t, q, k, p, count, verdict)


@compiled
def _miss_earliest(t: Table, q: Queues, k: int, p: int, count: int, verdict: Ints) -> None:
    """Counts this many jobs of a project and kind as missed: the earliest."""
    for i in range(len(verdict)):
        if q.jobs[i].kind == k and q.jobs[i].project == p:
            verdict[i] = IN_TIME
    for _ in range(count):
        first = -1
        for i in range(len(verdict)):
            if q.jobs[i].kind != k or q.jobs[i].project != p or verdict[i] == MISSED:
                continue
            if first < 0 or _is_earlier(t, q.jobs[i].row, q.jobs[first].row):
                first = i
        verdict[first] = MISSED


@compiled
def _is_earlier(t: Table, j: int, other: int) -> bool:
    """Whether a job comes before one that arrived earlier: by deadline, those that have run first."""
    one, two = t.jobs[j], t.jobs[other]
    if one.deadline_secs != two.deadline_secs:
        return bool(one.deadline_secs < two.deadline_secs)
    return bool(one.started > two.started)


@compiled
def is_lost(t: Table, j: int, now: float) -> bool:
    """Whether a job is late even if it runs from now on. By the letter it runs by its deadline all the same."""
    return goes_beyond_text(t) and now + left_secs(t, j, now) > t.jobs[j].deadline_secs


@compiled
def _add_missed(t: Table, j: int, k: int, now: float) -> None:
    """Inserts a job in its place: by deadline, those that have run first, in order of arrival. Lost ones come after
    those that can still be in time.
    """
    first = t.kinds[k].first_missed
    place = first + t.kinds[k].missed
    comes_last = is_lost(t, j, now)
    while place > first:
        other = t.lists[place - 1].missed
        if comes_last != is_lost(t, other, now):
            if comes_last:
                break
        elif not _is_earlier(t, j, other):
            break
        t.lists[place].missed = other
        place -= 1
    t.lists[place].missed = j
    t.kinds[k].missed += 1


@making_arrays
def find_delays(t: Table, p: int, now: float) -> None:
    """Finds per kind how long new jobs of a project certainly wait: the missed jobs of all keep the instances busy, or
    (but not by the letter) its own jobs that cannot wait for a new one.
    """
    for k in range(len(t.kinds)):
        t.kinds[k].delay_secs = 0.0
    if may_miss_deadlines(t, now):
        judge(t, now)
        for k in range(len(t.kinds)):
            is_piled = t.run[0].no_edf_simulation
            if t.run[0].limited and not is_piled:
                t.kinds[k].delay_secs = _busy_secs_within_limits(t, k, now)
                continue
            loads = np.zeros(int(t.kinds[k].instances))
            if is_piled:
                _sort_by_end(t, k)
            for i in range(t.kinds[k].missed):
                j = t.lists[t.kinds[k].first_missed + i].missed
                secs = left_secs(t, j, now) / t.kinds[k].up_fraction
                whole = int(t.jobs[j].usage)
                for _ in range(whole):
                    add_to_least(loads, secs)
                if t.jobs[j].usage > whole and not is_piled:
                    add_to_least(loads, secs * (t.jobs[j].usage - whole))
            if is_piled:
                t.run[0].judged_version = -1  # they are in another order now
            t.kinds[k].delay_secs = loads[0] if len(loads) else 0.0
    if not t.run[0].by_letter:
        for k in range(len(t.kinds)):
            t.kinds[k].delay_secs = max(t.kinds[k].delay_secs, _urgent_secs(t, p, k, now))


@making_arrays
def _busy_secs_within_limits(t: Table, k: int, now: float) -> float:
    """How long the missed jobs keep all instances busy, by deadline, if no more run at once than limits allow."""
    kind = t.kinds[k]
    first = kind.first_missed
    until = np.full(kind.missed, -1.0)  # of those that have an instance
    at = 0.0
    while True:
        free = kind.instances
        next_end = np.inf
        for i in range(kind.missed):
            if until[i] > at:
                free -= t.jobs[t.lists[first + i].missed].usage
        for i in range(kind.missed):
            job = t.jobs[t.lists[first + i].missed]
            if until[i] < 0.0 and free > NONE_FREE and _may_start(t, k, i, at, until, free):
                until[i] = at + left_secs(t, t.lists[first + i].missed, now) / kind.up_fraction
                free -= job.usage
            if until[i] > at:
                next_end = min(next_end, until[i])
        if free > NONE_FREE or next_end == np.inf:
            return at
        at = next_end


@compiled
def _may_start(t: Table, k: int, i: int, at: float, until: Floats, free: float) -> bool:
    first = t.kinds[k].first_missed
    job = t.jobs[t.lists[first + i].missed]
    if k and job.usage > free + NONE_FREE:
        return False
    same = mine = 0
    used = job.usage
    for place in range(len(until)):
        other = t.jobs[t.lists[first + place].missed]
        if until[place] <= at:
            continue
        if other.barred & job.barred == job.barred:
            used += other.usage
        if other.project == job.project:
            mine += 1
            if other.app == job.app:
                same += 1
    if job.barred and used > allowed_devices(t.kinds[k].instances, job.barred) + NONE_FREE:
        return False
    limit, of_project = t.apps[job.app].max_concurrent, t.projects[job.project].max_concurrent
    return not (0 < limit <= same or 0 < of_project <= mine)


@compiled
def _sort_by_end(t: Table, k: int) -> None:
    """Sorts the missed jobs by their ends in the simulation."""
    first = t.kinds[k].first_missed
    for i in range(first + 1, first + t.kinds[k].missed):
        j = t.lists[i].missed
        place = i
        while place > first and t.jobs[t.lists[place - 1].missed].sim_end_secs > t.jobs[j].sim_end_secs:
            t.lists[place].missed = t.lists[place - 1].missed
            place -= 1
        t.lists[place].missed = j


@compiled
def _urgent_secs(t: Table, p: int, k: int, now: float) -> float:
    """How long all instances together take for the project's jobs that would be late if a new one ran first."""
    run, project, up = t.run[0], t.projects[p], t.kinds[k].up_fraction
    if t.pairs[p, k].most_used < t.kinds[k].instances:
        return 0.0
    first = np.inf
    for j in range(run.jobs):
        if not t.jobs[j].done and t.jobs[j].kind == k:
            first = min(first, t.jobs[j].deadline_secs)
    if first > now + (project.job_secs + t.kinds[k].longest_secs) / up + SLACK_SECS:
        return 0.0
    work = 0.0
    for i in range(run.begun):
        work += _if_urgent(t, t.lists[i].begun, p, k, now)
    for j in range(run.jobs):
        if not t.jobs[j].started:
            work += _if_urgent(t, j, p, k, now)
    return work / t.kinds[k].instances / up


@compiled
def _if_urgent(t: Table, j: int, p: int, k: int, now: float) -> float:
    job = t.jobs[j]
    if job.done or job.project != p or job.kind != k:
        return 0.0
    limit = t.apps[job.app].max_concurrent
    if 0 < limit * job.usage < t.kinds[k].instances or job.barred:
        return 0.0  # its application never keeps all instances busy
    secs = left_secs(t, j, now)
    late = now + (t.projects[p].job_secs + secs) / t.kinds[k].up_fraction > job.deadline_secs
    return secs * job.usage if late else 0.0
