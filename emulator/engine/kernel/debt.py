"""The policy of 2005 (emulator.engine.policies.debt_2005). Its running tasks are `task_*` of Table.lists."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.jobs import left_secs
from emulator.engine.kernel.ltd import MIN_RECHECK_SECS, next_allowed
from emulator.engine.kernel.queues import NONE_FREE
from emulator.engine.kernel.rec import MAX_UNFINISHED, NOBODY, can_ask
from emulator.engine.table import Floats, Ints, Table
from emulator.engine.timeline.reasons import Reason

SHARE_ROUNDING: Final = 1e-9  # fraction of the least buffer: it must not count as a project without work
DEBT_KEPT: Final = int(Reason.DEBT_KEPT)
DEBT_RESUMED: Final = int(Reason.DEBT_RESUMED)
DEBT_NEW: Final = int(Reason.DEBT_NEW)
DEBT_MID_PERIOD: Final = int(Reason.DEBT_MID_PERIOD)
FETCH_BUFFER: Final = int(Reason.FETCH_BUFFER)
FETCH_FEW_TASKS: Final = int(Reason.FETCH_FEW_TASKS)
FETCH_PROJECT_SHORT: Final = int(Reason.FETCH_PROJECT_SHORT)


@compiled
def accrue(t: Table, now: float) -> None:
    """Books the time until now."""
    run = t.run[0]
    elapsed_secs = now - run.accrued_secs
    run.accrued_secs = now
    cpus = 0.0
    for i in range(run.tasks):
        job = t.jobs[t.lists[i].task_jobs]
        if job.running:
            cpus += job.cpus
    if elapsed_secs <= 0.0 or cpus == 0.0:
        return
    rate = min(1.0, t.kinds[0].instances / cpus)
    for i in range(run.tasks):
        job = t.jobs[t.lists[i].task_jobs]
        if job.running:
            t.lists[i].task_work += elapsed_secs * job.cpus * rate


@compiled
def _is_runnable(t: Table, p: int) -> bool:
    return bool(t.projects[p].attached and not t.projects[p].suspended)


@compiled
def job_ended(t: Table, j: int) -> None:
    """Records the work of a task that has ended, for the end of the period."""
    run = t.run[0]
    for i in range(run.tasks):
        if t.lists[i].task_jobs == j:
            t.projects[t.jobs[j].project].done_secs += t.lists[i].task_work
            for after in range(i, run.tasks - 1):
                entry, following = t.lists[after], t.lists[after + 1]
                entry.task_jobs, entry.task_reasons = following.task_jobs, following.task_reasons
                entry.task_pay_off, entry.task_work = following.task_pay_off, following.task_work
            run.tasks -= 1
            return


@compiled
def select(t: Table, now: float) -> None:
    """Chooses the jobs to run from now on, and when to choose again."""
    run = t.run[0]
    if now >= run.next_period_secs:
        _preempt(t, now)
    elif t.kinds[0].active:
        _start(t, now)
    for j in range(run.jobs):
        t.jobs[j].taken = 0
    run.chosen = 0
    if t.kinds[0].active:
        for i in range(run.tasks):
            t.jobs[t.lists[i].task_jobs].taken = 1
            t.lists[i].chosen = t.lists[i].task_jobs
            t.lists[i].reasons = t.lists[i].task_reasons
        run.chosen = run.tasks
    run.choose_at = max(run.next_period_secs, now + 1.0)


@making_arrays
def _preempt(t: Table, now: float) -> None:
    """Finishes the accounting of the last period and chooses for the next."""
    run = t.run[0]
    old_jobs = np.empty(run.tasks, np.int64)
    for i in range(run.tasks):
        old_jobs[i] = t.lists[i].task_jobs
        t.projects[t.jobs[old_jobs[i]].project].done_secs += t.lists[i].task_work
    total_secs = 0.0
    for p in range(len(t.projects)):
        total_secs += t.projects[p].done_secs
    total_secs = run.initial_secs + total_secs
    run.initial_secs = 0.0
    future = np.zeros(len(t.projects))
    for p in range(len(t.projects)):
        project = t.projects[p]
        if project.attached:
            t.pairs[p, 0].debt = t.pairs[p, 0].debt + project.share_fraction * total_secs - project.done_secs
            future[p] = t.pairs[p, 0].debt
        project.done_secs = 0.0
    run.pay_off_secs = total_secs / t.kinds[0].instances if total_secs > 0 else run.period_secs
    run.period_from_secs = now
    run.next_period_secs = now + run.period_secs
    run.tasks = 0
    _fill(t, future, run.pay_off_secs, old_jobs, False)


@making_arrays
def _start(t: Table, now: float) -> None:
    """Fills a CPU that became free within the period."""
    run = t.run[0]
    if _free_cpus(t) <= NONE_FREE:
        return
    future = np.zeros(len(t.projects))
    for p in range(len(t.projects)):
        future[p] = t.pairs[p, 0].debt - t.projects[p].done_secs
    for i in range(run.tasks):
        future[t.jobs[t.lists[i].task_jobs].project] -= t.lists[i].task_pay_off
    left = (run.next_period_secs - now) / (run.next_period_secs - run.period_from_secs)
    _fill(t, future, left * run.pay_off_secs, np.empty(0, np.int64), True)


@compiled
def _free_cpus(t: Table) -> float:
    cpus = 0.0
    for i in range(t.run[0].tasks):
        cpus += t.jobs[t.lists[i].task_jobs].cpus
    return float(t.kinds[0].instances - cpus)


@making_arrays
def _fill(t: Table, future: Floats, pay_off_secs: float, old_jobs: Ints, in_mid_period: bool) -> None:
    """Fills the free CPUs: each time from the project with the largest expected future debt."""
    run = t.run[0]
    free_cpus = _free_cpus(t)
    projects = len(t.projects)
    is_open = np.zeros(projects, np.bool_)
    stage = np.full(projects, DEBT_KEPT)
    place = np.zeros(projects, np.int64)
    for p in range(projects):
        is_open[p] = _is_runnable(t, p) and t.pairs[p, 0].jobs > 0
    for j in range(run.jobs):
        t.jobs[j].taken = 0
    for i in range(run.tasks):
        t.jobs[t.lists[i].task_jobs].taken = 1
    for j in old_jobs:
        t.jobs[j].taken = 1
    while free_cpus > NONE_FREE:
        best = -1
        for p in range(projects):
            if is_open[p] and (best < 0 or future[p] > future[best]):
                best = p
        if best < 0:
            return
        j, stage[best], place[best] = _next_offer(t, best, old_jobs, stage[best], place[best])
        if j < 0:
            is_open[best] = False  # it has nothing more, so no later CPU's choice can take it either
            continue
        entry = t.lists[run.tasks]
        entry.task_jobs = j
        entry.task_reasons = DEBT_MID_PERIOD if in_mid_period else stage[best]
        entry.task_pay_off = pay_off_secs * t.jobs[j].cpus
        entry.task_work = 0.0
        run.tasks += 1
        future[best] -= entry.task_pay_off
        free_cpus -= t.jobs[j].cpus


@compiled
def _next_offer(t: Table, p: int, old_jobs: Ints, stage: int, place: int) -> tuple[int, int, int]:
    """A project's next result, -1 for none, and where to continue: those that ran last, preempted ones, new ones. The
    stage is the reason for its choice.
    """
    run = t.run[0]
    if stage == DEBT_KEPT:
        while place < len(old_jobs):
            j = old_jobs[place]
            place += 1
            if t.jobs[j].project == p:
                return j, stage, place
        stage = DEBT_RESUMED
        place = 0
    if stage == DEBT_RESUMED:
        while place < run.begun:
            j = t.lists[place].begun
            place += 1
            if t.jobs[j].project == p and not t.jobs[j].kind and not t.jobs[j].taken:
                return j, stage, place
        stage = DEBT_NEW
        place = 0
    while place < run.jobs:
        job = t.jobs[place]
        place += 1
        if job.project == p and not (job.kind or job.started or job.done or job.taken):
            return place - 1, stage, place
    return -1, stage, place


class Need(NamedTuple):
    """Whether more work is needed: the first true condition of the three of need_to_get_work, as the reason to ask, or
    0. `spare_secs`: how much work may be done before the first or the last of them can become true; `lack_secs`: how
    far the work falls short of the least buffer on all CPUs.
    """

    reason: int
    busy_cpus: int
    spare_secs: float
    lack_secs: float


@making_arrays
def _find_need(t: Table, work_secs: Floats, now: float) -> Need:
    """Finds whether more work is needed ("need_to_get_work()"), and each project's estimated work.

    Results are packed into bins of one CPU each, longest first; a bin that holds the least buffer is a busy CPU. Then
    all work is counted, each project's up to its share of the least buffer of all CPUs.
    """
    run = t.run[0]
    cpus = max(1, int(t.kinds[0].instances))
    if not run.uneven:
        total_secs = 0.0
        for p in range(len(work_secs)):
            work_secs[p] = 0.0
            if _is_runnable(t, p):
                of_begun = 0.0
                for i in range(run.begun):
                    if t.jobs[t.lists[i].begun].project == p:
                        of_begun += left_secs(t, t.lists[i].begun, now)
                work_secs[p] = t.pairs[p, 0].waiting_secs + of_begun
                total_secs += work_secs[p]
        # No bin gets more than its last result beyond the least buffer, so this much fills them all.
        if total_secs > cpus * (run.buffer_min_secs + t.kinds[0].longest_secs) + 1.0:
            return _judge(t, work_secs, cpus)
    count = 0
    for j in range(run.jobs):
        job = t.jobs[j]
        if not (job.done or job.kind) and _is_runnable(t, job.project):
            count += max(1, int(job.cpus))
    results = np.empty(count)
    count = 0
    for p in range(len(work_secs)):
        work_secs[p] = 0.0
        if not _is_runnable(t, p):
            continue
        for i in range(run.begun):
            j = t.lists[i].begun
            if t.jobs[j].project == p and not t.jobs[j].kind:
                count = _add_results(t, j, now, work_secs, results, count)
        for j in range(run.jobs):
            job = t.jobs[j]
            if job.project == p and not (job.kind or job.started or job.done):
                count = _add_results(t, j, now, work_secs, results, count)
    results = np.sort(results)
    busy_cpus, bin_secs = 0, 0.0
    while count and busy_cpus < cpus:
        count -= 1
        bin_secs += results[count]
        if bin_secs >= run.buffer_min_secs:
            busy_cpus += 1
            bin_secs = 0.0
    return _judge(t, work_secs, busy_cpus)


@compiled
def _add_results(t: Table, j: int, now: float, work_secs: Floats, results: Floats, count: int) -> int:
    """Adds a result to the bins. A job of several CPUs counts as one result for each."""
    job = t.jobs[j]
    whole = max(1, int(job.cpus))
    secs = left_secs(t, j, now) * job.cpus / whole
    for _ in range(whole):
        results[count] = secs
        work_secs[job.project] += secs
        count += 1
    return count


@compiled
def _judge(t: Table, work_secs: Floats, busy_cpus: int) -> Need:
    """Evaluates the three conditions of need_to_get_work, by each project's work and the CPUs that it keeps busy."""
    run = t.run[0]
    cpus = max(1, int(t.kinds[0].instances))
    needed_secs = run.buffer_min_secs * cpus
    total_secs = 0.0
    beyond_secs = math.inf
    for p in range(len(work_secs)):
        if _is_runnable(t, p):
            total_secs += work_secs[p]
            beyond_secs = min(beyond_secs, work_secs[p] - t.projects[p].runnable_fraction * needed_secs)
    if beyond_secs == math.inf:
        beyond_secs = 0.0
    reason = 0
    if total_secs < needed_secs:
        reason = FETCH_BUFFER
    elif busy_cpus < cpus:
        reason = FETCH_FEW_TASKS
    elif beyond_secs < -SHARE_ROUNDING * needed_secs:
        reason = FETCH_PROJECT_SHORT
    spare_secs = min(total_secs - needed_secs, beyond_secs)
    return Need(reason, busy_cpus, spare_secs, max(0.0, needed_secs - total_secs))


@making_arrays
def fetch(t: Table, now: float) -> tuple[int, int, int]:
    """Decides whom to ask, for which reason and kind (`NOBODY`: nobody, and `fetch_at` is when to look again)."""
    run = t.run[0]
    if now >= run.recheck_secs:
        work_secs = np.empty(len(t.projects))
        need = _find_need(t, work_secs, now)
        p = _request(t, need, work_secs, now) if need.reason else -1
        if p >= 0:
            return p, need.reason, 0
        run.recheck_secs = _next_recheck(t, need, now)
    run.fetch_at = max(run.recheck_secs, now + 1.0)
    return NOBODY


@compiled
def _next_recheck(t: Table, need: Need, now: float) -> float:
    """When to count again: until then nothing can be needed, or no project can be asked.

    Two conditions need at least as long as the spare work lasts, at one second per CPU and second; that of few tasks
    has no such bound, so a quarter of the least buffer is the longest.
    """
    if need.reason:
        return next_allowed(t, now)
    secs = min(need.spare_secs / t.kinds[0].instances, t.run[0].buffer_min_secs / 4)
    return now + max(MIN_RECHECK_SECS, secs)


@compiled
def _request(t: Table, need: Need, work_secs: Floats, now: float) -> int:
    """Decides whom to ask, -1 for nobody: the project furthest below its cap, then that with the largest debt. Some
    projects only when the computer as a whole is short.
    """
    run, cpus = t.run[0], t.kinds[0].instances
    is_short = need.reason == FETCH_BUFFER or need.reason == FETCH_FEW_TASKS
    best, most_lack = -1, 0.0
    for p in range(len(t.projects)):
        project = t.projects[p]
        if not can_ask(t, p, now) or not t.pairs[p, 0].can_supply or project.unfinished > MAX_UNFINISHED:
            continue
        cap_secs = project.runnable_fraction * run.buffer_min_secs * cpus
        lack = 1 - work_secs[p] / cap_secs if cap_secs > 0 else 0.0
        if lack <= 0 and not is_short:
            continue
        lack = max(0.0, lack)
        if best < 0 or lack > most_lack or (lack == most_lack and t.pairs[p, 0].debt > t.pairs[best, 0].debt):
            best, most_lack = p, lack
    if best < 0:
        return -1
    secs = t.projects[best].runnable_fraction * run.buffer_total_secs * cpus - work_secs[best]
    if is_short:
        secs = max(secs, need.lack_secs, (cpus - need.busy_cpus) * run.buffer_min_secs)
    for k in range(len(t.kinds)):
        t.kinds[k].asked_secs = t.kinds[k].asked_instances = t.kinds[k].delay_secs = 0.0
    t.kinds[0].asked_secs = max(secs, 1.0)
    return best


@making_arrays
def piggyback_request(t: Table, p: int, now: float) -> tuple[int, int, int]:
    """Returns the request to a project that is being contacted anyway."""
    work_secs = np.empty(len(t.projects))
    need = _find_need(t, work_secs, now)
    if need.reason and _request(t, need, work_secs, now) == p:
        return p, need.reason, 0
    return NOBODY
