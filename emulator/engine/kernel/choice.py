"""Choose which jobs run (BOINC's run list): the four steps of the client scheduling document, for any order of
projects.

1. for each kind of GPU, jobs that would miss their deadline, earliest deadline first, until all instances are used;
2. the same for the CPU;
3. for each kind of GPU, while instances are left, other jobs in order of their projects' priority;
4. the same for the CPU.

When a job is chosen its project's priority falls as if the job had run for one scheduling period. In steps 3 and 4
running jobs whose time slice is not over come first, and of each project a running job, then a preempted one, then a
new one (emulator document, section 7). Under the default policy, jobs that will be late even if they run from now on
are left to steps 3 and 4, where they are the first of their kind, so jobs for GPUs do not wait for the CPUs that such
jobs would take for nothing.
"""

from __future__ import annotations

import math
from typing import Any, Final

from emulator.engine.kernel.bounds import MIN_MARGIN_SECS, may_miss_deadlines
from emulator.engine.kernel.compiled import compiled, making_arrays, zero_rows
from emulator.engine.kernel.jobs import (
    CPU_DEADLINE,
    GPU_DEADLINE,
    STOP,
    is_by_deadline,
    set_cpu_rate,
    settle,
    start,
    stop,
)
from emulator.engine.kernel.queues import (
    LTD,
    LTD_SINGLE,
    NONE_FREE,
    allowed_devices,
    comes_before,
    goes_beyond_text,
    overall_debt,
)
from emulator.engine.kernel.records import log
from emulator.engine.kernel.simulations import is_lost, judge
from emulator.engine.table import Table, row_type
from emulator.engine.timeline.reasons import Reason

GPU_PRIORITY: Final = int(Reason.GPU_PRIORITY)
CPU_PRIORITY: Final = int(Reason.CPU_PRIORITY)
SLICE: Final = int(Reason.SLICE)
PREEMPTED: Final = int(Reason.PREEMPTED)
NO_MEMORY: Final = int(Reason.NO_MEMORY)
SLICE_OVER: Final = 0  # the stages in which a project offers its jobs
PREEMPTED_BEFORE: Final = 1
NEW: Final = 2
NO_MORE: Final = 3
OFFERS: Final = row_type("tier stage place", "height")  # of a project, while jobs are chosen
MIN_RECHECK_SECS: Final = 1.0


@compiled
def step_cost(t: Table, j: int) -> float:
    """The amount that a job's choice adds to its project's rank."""
    run, job = t.run[0], t.jobs[j]
    if run.policy == LTD:
        return job.counted_flops * run.period_secs
    if run.policy == LTD_SINGLE:
        return job.cpus * run.period_secs
    if run.hour_of_day_bump:
        all_done = 0.0
        for p in range(len(t.projects)):
            all_done += t.projects[p].done_flop
        all_done = all_done if all_done else 1.0  # before the first second too, projects take turns by their shares
        return all_done / 24 / run.host_flops * t.projects[job.project].inverse * job.counted_flops
    return run.growth * t.projects[job.project].inverse * job.counted_flops * run.period_secs


@compiled
def _has_ram(t: Table, j: int, now: float) -> bool:
    run, job = t.run[0], t.jobs[j]
    needed = t.apps[job.app].ram_bytes
    if not needed or run.ram_bytes == math.inf:
        return True
    if run.ram_used + needed <= run.ram_bytes:
        job.waits_for_ram = 0
        return True
    if not job.waits_for_ram:
        job.waits_for_ram = 1
        log(t, now, STOP, NO_MEMORY, job.project, job.id, job.kind, 0.0)
    return False


@compiled
def _overcommits(t: Table, j: int) -> bool:
    used = 0.0
    for i in range(t.run[0].chosen):
        other = t.jobs[t.lists[i].chosen]
        if not other.kind:
            used += other.cpus
    return used > 0.0 and used + t.jobs[j].cpus > t.kinds[0].instances + NONE_FREE


@compiled
def _fits(t: Table, j: int, now: float) -> bool:
    """Whether a job may run beside those chosen."""
    job = t.jobs[j]
    cpus = t.kinds[0].free
    if job.kind:
        if job.usage > t.kinds[job.kind].free + NONE_FREE or cpus - job.cpus < -1.0 - NONE_FREE:
            return False
    elif cpus <= NONE_FREE or (job.cpus > 1.0 and _overcommits(t, j)):
        return False
    return _has_ram(t, j, now) and not (t.run[0].limited and _is_at_limit(t, j))


@compiled
def _is_at_limit(t: Table, j: int) -> bool:
    """Whether the chosen jobs already reach the limit of its application or its project, or fill all the devices that
    it may use.
    """
    job = t.jobs[j]
    same = mine = 0
    used = job.usage  # of the devices that it may use
    for i in range(t.run[0].chosen):
        other = t.jobs[t.lists[i].chosen]
        if other.kind == job.kind and other.barred & job.barred == job.barred:
            used += other.usage
        if other.project == job.project:
            mine += 1
            if other.app == job.app:
                same += 1
    if job.barred and used > allowed_devices(t.kinds[job.kind].instances, job.barred) + NONE_FREE:
        return True
    limit, of_project = t.apps[job.app].max_concurrent, t.projects[job.project].max_concurrent
    return bool(0 < limit <= same or 0 < of_project <= mine)


@compiled
def _take(t: Table, j: int, reason: int) -> None:
    run, job = t.run[0], t.jobs[j]
    t.kinds[job.kind].free -= job.usage
    if job.kind:
        t.kinds[0].free -= job.cpus
    t.lists[run.chosen].chosen = j
    t.lists[run.chosen].reasons = reason
    run.chosen += 1
    run.ram_used += t.apps[job.app].ram_bytes
    job.taken = 1


@compiled
def _take_missed(t: Table, k: int, lost: bool, now: float) -> None:
    """Takes jobs that would miss their deadline: those that are lost, or those that can still be in time."""
    for i in range(t.kinds[k].first_missed, t.kinds[k].first_missed + t.kinds[k].missed):
        if t.kinds[k].free <= NONE_FREE:
            return
        if is_lost(t, t.lists[i].missed, now) == lost and _fits(t, t.lists[i].missed, now):
            _take(t, t.lists[i].missed, GPU_DEADLINE if k else CPU_DEADLINE)


@compiled
def _rest(free: float, usage: float) -> float:
    """The part of an instance that is left over beside a job."""
    rest = free - usage
    rest -= math.floor(rest + NONE_FREE)
    return max(rest, 0.0)


@compiled
def _strands(t: Table, j: int) -> bool:
    """Whether a job leaves a part of a GPU into which no other job fits, where another job would leave less."""
    job, free = t.jobs[j], t.kinds[t.jobs[j].kind].free
    rest = _rest(free, job.usage)
    if rest <= NONE_FREE:
        return False
    leaves_less = False
    for i in range(t.run[0].jobs):
        other = t.jobs[i]
        if i == j or other.done or other.taken or other.kind != job.kind or t.projects[other.project].suspended:
            continue
        if other.usage <= rest + NONE_FREE:
            return False
        if other.usage <= free + NONE_FREE and _rest(free, other.usage) < rest - NONE_FREE:
            leaves_less = True
    return leaves_less


@compiled
def _keep(t: Table, k: int, whole_first: bool, now: float) -> None:
    """Keeps the running jobs whose time slice is not over."""
    for i in range(t.run[0].running):
        job = t.jobs[t.lists[i].running]
        is_kept = job.slice_end_secs > now and job.kind == k and not job.taken
        if is_kept and not t.projects[job.project].suspended and _fits(t, t.lists[i].running, now):
            if whole_first and _strands(t, t.lists[i].running):
                continue
            _take(t, t.lists[i].running, SLICE)


@compiled
def _next_offer(t: Table, p: int, k: int, stage: int, place: int, now: float) -> tuple[int, int, int]:
    """A project's next job, -1 for none, and where to continue: running ones whose slice is over, preempted ones, new
    ones.
    """
    run = t.run[0]
    while stage < NEW:
        while place < run.begun:
            j = t.lists[place].begun
            place += 1
            job = t.jobs[j]
            if job.project == p and job.kind == k and not job.taken:
                is_over = job.running and job.slice_end_secs <= now
                if is_over if stage == SLICE_OVER else not job.running:
                    return j, stage, place
        stage += 1
        place = 0
    if t.pairs[p, k].waiting:
        while place < run.jobs:
            j = place
            place += 1
            job = t.jobs[j]
            if job.project == p and job.kind == k and not (job.started or job.done or job.taken):
                return j, stage, place
    return -1, stage, place


@making_arrays
def _take_by_priority(t: Table, k: int, reason: int, whole_first: bool, now: float) -> None:
    """Performs steps 3 and 4. With ``whole_first`` jobs are left out that would leave a part of an instance idle."""
    if t.kinds[k].free <= NONE_FREE:
        return
    _keep(t, k, whole_first, now)
    if t.kinds[k].free <= NONE_FREE:
        return
    offers = zero_rows(len(t.projects), OFFERS)
    _begin_offers(t, offers, k)
    while t.kinds[k].free > NONE_FREE:
        best = -1
        for p in range(len(offers)):
            if offers[p].stage != NO_MORE and (best < 0 or comes_before(offers, p, best)):
                best = p
        if best < 0:
            return
        mine = offers[best]
        j, mine.stage, mine.place = _next_offer(t, best, k, mine.stage, mine.place, now)
        if j < 0:
            mine.stage = NO_MORE
        elif _fits(t, j, now) and not (whole_first and _strands(t, j)):
            _take(t, j, reason)
            mine.height += step_cost(t, j)


@compiled
def _begin_offers(t: Table, offers: Any, k: int) -> None:
    """Ranks all projects, including the cost of their chosen jobs."""
    run = t.run[0]
    is_debt = run.policy == LTD or run.policy == LTD_SINGLE
    for i in range(run.chosen):
        offers[t.jobs[t.lists[i].chosen].project].height += step_cost(t, t.lists[i].chosen)
    for p in range(len(offers)):
        project, mine = t.projects[p], offers[p]
        mine.height += -overall_debt(t, p) if is_debt else project.done_flop * project.inverse
        mine.tier = project.tier
        mine.stage = SLICE_OVER if t.pairs[p, k].jobs > 0 and not project.suspended else NO_MORE


@compiled
def _end_slices(t: Table, now: float) -> None:
    """Gives chosen jobs a new slice if theirs is over, and finds when the first one ends."""
    run = t.run[0]
    new_end = now + run.period_secs
    run.first_end = new_end
    for i in range(run.chosen):
        job = t.jobs[t.lists[i].chosen]
        if job.slice_end_secs <= now or not job.running:
            job.slice_end_secs = new_end
        elif job.slice_end_secs < run.first_end:
            run.first_end = job.slice_end_secs


@compiled
def apply(t: Table, now: float) -> None:
    """Runs the chosen jobs."""
    run = t.run[0]
    count = 0
    for i in range(run.running):
        j = t.lists[i].running
        if t.jobs[j].taken:
            t.lists[count].running = j
            count += 1
        else:
            stop(t, j, now, PREEMPTED)
    run.running = count
    for i in range(run.chosen):
        if not t.jobs[t.lists[i].chosen].running:
            start(t, t.lists[i].chosen, now, t.lists[i].reasons)
    for i in range(run.chosen):
        job = t.jobs[t.lists[i].chosen]
        if not job.by_deadline and is_by_deadline(t.lists[i].reasons):
            settle(t, t.lists[i].chosen, now)
            job.by_deadline = 1
    if run.uneven or run.running > t.kinds[0].instances:
        set_cpu_rate(t, now)


@compiled
def select(t: Table, now: float) -> bool:
    """Chooses the jobs to run from now on, and when to choose again; returns False if the running ones should
    continue.
    """
    run = t.run[0]
    kinds = len(t.kinds)
    endangered = may_miss_deadlines(t, now)
    if not endangered and run.full_at_moves == run.moves and now < run.first_end:
        run.choose_at = max(run.first_end if run.contested else math.inf, now + MIN_RECHECK_SECS)
        return False
    for k in range(kinds):
        t.kinds[k].free = t.kinds[k].instances if t.kinds[k].active else 0.0
    run.chosen = 0
    run.ram_used = 0.0
    for j in range(run.jobs):
        t.jobs[j].taken = 0
    if endangered:
        judge(t, now)
        for turn in range(kinds):
            k = (turn + 1) % kinds
            _take_missed(t, k, False, now)
    for turn in range(kinds):
        k = (turn + 1) % kinds
        if endangered:
            _take_missed(t, k, True, now)
        if k and t.run[0].uneven and goes_beyond_text(t):
            _take_by_priority(t, k, GPU_PRIORITY, True, now)
        _take_by_priority(t, k, GPU_PRIORITY if k else CPU_PRIORITY, False, now)
    _end_slices(t, now)
    again = run.first_end if endangered or run.contested else math.inf
    run.full_at_moves = -1
    if endangered:
        for i in range(run.margins):
            if not t.jobs[t.lists[i].margin_jobs].taken:
                again = min(again, now + max(MIN_MARGIN_SECS, t.lists[i].margin_secs))
    elif not _any_free(t):
        run.full_at_moves = run.moves
        for i in range(run.running):
            if t.jobs[t.lists[i].running].slice_end_secs <= now:
                run.full_at_moves += 1
    run.choose_at = max(again, now + MIN_RECHECK_SECS)
    return True


@compiled
def _any_free(t: Table) -> bool:
    for k in range(len(t.kinds)):
        if t.kinds[k].free > NONE_FREE:
            return True
    return False
