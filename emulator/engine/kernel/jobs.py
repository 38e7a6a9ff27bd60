"""Jobs that arrive, start, stop and end: emulator.engine.client in arrays."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from emulator.engine.client import NEW_JOB_WEIGHT
from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.records import log, record_blocks, record_miss, release_lanes, take_lanes
from emulator.engine.table import Floats, Table
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind

RUN: Final = int(DecisionKind.RUN)
STOP: Final = int(DecisionKind.STOP)
END: Final = int(DecisionKind.END)
GPU_DEADLINE: Final = int(Reason.GPU_DEADLINE)
CPU_DEADLINE: Final = int(Reason.CPU_DEADLINE)
JOB_MET: Final = int(Reason.JOB_MET)
JOB_LATE: Final = int(Reason.JOB_LATE)


@compiled
def left_secs(t: Table, j: int, now: float) -> float:
    """Estimated run time left."""
    job = t.jobs[j]
    return (job.left - (now - job.settled_secs) * job.rate) * job.bias


@compiled
def spent_flop(t: Table, j: int) -> float:
    """Counted FLOP spent on it in this run, until it was last settled."""
    job = t.jobs[j]
    return (job.size_secs - job.before_secs - job.left) * job.counted_flops + job.changed_flop


@compiled
def work_secs(t: Table, k: int, now: float) -> float:
    """Estimated instance-seconds of all unfinished jobs of that kind, up to rounding."""
    kind = t.kinds[k]
    return kind.work - kind.work_rate * (now - kind.work_at)


@making_arrays
def buffered_secs(t: Table, now: float) -> Floats:
    """Per kind, the estimated instance-seconds of all unfinished jobs."""
    secs = np.zeros(len(t.kinds))
    for k in range(len(t.kinds)):
        for p in range(len(t.projects)):
            secs[k] += t.pairs[p, k].waiting_secs
    for i in range(t.run[0].begun):
        job = t.jobs[t.lists[i].begun]
        secs[job.kind] += left_secs(t, t.lists[i].begun, now) * job.usage
    return secs


@compiled
def settle(t: Table, j: int, now: float) -> None:
    """Books the work of a running job since it was last settled."""
    job = t.jobs[j]
    start = job.settled_secs
    if now <= start:
        return
    done = (now - start) * job.rate
    left = job.left - done
    job.left = left if left > 0.0 else 0.0
    t.pairs[job.project, job.kind].instance_secs += done * job.usage
    if job.kind:
        t.pairs[job.project, 0].instance_secs += done * job.cpus
    t.projects[job.project].used_flop += done * job.counted_flops
    job.settled_secs = now
    if t.run[0].records:
        record_blocks(t, j, start, now)


@compiled
def load(t: Table, j: int, rate: float, now: float) -> None:
    """Updates its project's load and the remaining work: the job is faster by this much from now on."""
    job = t.jobs[j]
    kind = t.kinds[job.kind]
    t.pairs[job.project, job.kind].busy += job.usage * rate
    if job.kind:
        t.pairs[job.project, 0].busy += job.cpus * rate
    t.projects[job.project].busy_flops += job.counted_flops * rate
    if now > kind.work_at:
        kind.work -= kind.work_rate * (now - kind.work_at)
        kind.work_at = now
    kind.work_rate += rate * job.usage * job.bias


@compiled
def update_contested(t: Table) -> None:
    """Updates whether two projects have jobs for the same kind of processor."""
    contested = 0
    for k in range(len(t.kinds)):
        owners = 0
        for p in range(len(t.projects)):
            if t.pairs[p, k].jobs > 0:
                owners += 1
        if owners > 1:
            contested = 1
    t.run[0].contested = contested


@compiled
def arrive(t: Table, j: int) -> None:
    """Adds a job that has arrived."""
    run, job = t.run[0], t.jobs[j]
    project, pair, kind = t.projects[job.project], t.pairs[job.project, job.kind], t.kinds[job.kind]
    pair.jobs += 1
    pair.waiting += 1
    if pair.jobs == 1:
        update_contested(t)
    project.unfinished += 1
    work = job.estimate_secs * job.usage
    pair.waiting_secs += work
    kind.work += work
    weight = NEW_JOB_WEIGHT if project.job_secs else 1.0
    project.job_secs += (job.estimate_secs - project.job_secs) * weight
    project.job_flop += (job.estimate_secs * job.counted_flops - project.job_flop) * weight
    if job.estimate_secs > kind.longest_secs:
        kind.longest_secs = job.estimate_secs
    if job.cpus != 1.0 or job.kind:
        run.uneven = 1
        kind.max_usage = max(kind.max_usage, job.usage)
        kind.min_usage = min(kind.min_usage, job.usage)
        if job.kind:
            kind.beside = max(kind.beside, job.cpus / job.usage)
    run.version += 1
    run.arrivals += 1
    run.safe_until_secs = 0.0


@compiled
def is_by_deadline(reason: int) -> bool:
    """Whether a job chosen for this reason runs because of its deadline."""
    return reason == GPU_DEADLINE or reason == CPU_DEADLINE


@compiled
def start(t: Table, j: int, now: float, reason: int) -> None:
    """Starts a job."""
    run, job = t.run[0], t.jobs[j]
    project, pair = t.projects[job.project], t.pairs[job.project, job.kind]
    if not job.started:
        job.started = 1
        pair.waiting -= 1
        pair.begun += 1
        pair.waiting_secs = pair.waiting_secs - job.estimate_secs * job.usage if pair.waiting > 0 else 0.0
        t.lists[run.begun].begun = j
        run.begun += 1
    job.running = 1
    job.by_deadline = 1 if is_by_deadline(reason) else 0
    job.rate = run.cpu_rate * job.pace if job.kind == 0 else job.pace
    job.settled_secs = now
    job.end_secs = now + (job.left - job.left_at_error) / job.rate
    if run.records:
        take_lanes(t, j)
    load(t, j, job.rate, now)
    if not project.running:
        gap = now - project.gap_from_secs
        project.gap_cubes += gap * gap * gap
    project.running += 1
    t.lists[run.running].running = j
    run.running += 1
    log(t, now, RUN, reason, job.project, job.id, job.kind, 0.0)


@compiled
def stop(t: Table, j: int, now: float, reason: int) -> None:
    """Stops a running job; the caller removes it from `running`."""
    settle(t, j, now)
    job = t.jobs[j]
    load(t, j, -job.rate, now)
    t.run[0].moves += 1
    job.running = 0
    job.rate = 0.0
    job.end_secs = math.inf
    if t.run[0].records:
        release_lanes(t, j)
    project = t.projects[job.project]
    project.running -= 1
    if not project.running:
        project.gap_from_secs = now
        for k in range(len(t.kinds)):
            t.pairs[job.project, k].busy = 0.0
        project.busy_flops = 0.0
    if reason:
        log(t, now, STOP, reason, job.project, job.id, job.kind, 0.0)


@compiled
def judge_late(t: Table, j: int, now: float, reason: int) -> None:
    """Counts a job as late: the work done for it is wasted."""
    job = t.jobs[j]
    project = t.projects[job.project]
    project.late += 1
    project.wasted_flop += spent_flop(t, j)
    record_miss(t, now, j)
    log(t, now, END, reason, job.project, job.id, job.kind, now - job.deadline_secs)


@compiled
def _leave_lists(t: Table, j: int) -> None:
    """Takes a job out of the running and the begun ones."""
    run = t.run[0]
    place = 0
    for i in range(run.running):
        if t.lists[i].running != j:
            t.lists[place].running = t.lists[i].running
            place += 1
    run.running = place
    place = 0
    for i in range(run.begun):
        if t.lists[i].begun != j:
            t.lists[place].begun = t.lists[i].begun
            place += 1
    run.begun = place


@compiled
def finish(t: Table, j: int, now: float) -> None:
    """Ends a running job, finished or failed: it leaves the lists."""
    run, job = t.run[0], t.jobs[j]
    stop(t, j, now, 0)
    project, pair = t.projects[job.project], t.pairs[job.project, job.kind]
    job.left = job.left_at_error
    job.done = 1
    _leave_lists(t, j)
    pair.begun -= 1
    pair.jobs -= 1
    project.unfinished -= 1
    if not pair.jobs:
        update_contested(t)
    run.version += 1
    if job.left_at_error:
        t.kinds[job.kind].work -= left_secs(t, j, now) * job.usage
        project.failed += 1
        project.wasted_flop += spent_flop(t, j)
    elif now - job.deadline_secs <= 0.0:
        log(t, now, END, JOB_MET, job.project, job.id, job.kind, 0.0)
    elif run.wasted_when_reported:
        log(t, now, END, JOB_LATE, job.project, job.id, job.kind, now - job.deadline_secs)
    else:
        judge_late(t, j, now, JOB_LATE)
    job.end_secs = now


@compiled
def set_cpu_rate(t: Table, now: float) -> None:
    """Where CPU jobs use more CPUs than GPU jobs leave, slows all of them equally."""
    run = t.run[0]
    beside = own = 0.0
    for i in range(run.running):
        job = t.jobs[t.lists[i].running]
        if job.kind:
            beside += job.cpus
        else:
            own += job.cpus
    free = max(t.kinds[0].instances - beside, 0.01)
    rate = free / own if own > free else 1.0
    if rate == run.cpu_rate:
        return
    run.cpu_rate = rate
    for i in range(run.running):
        j = t.lists[i].running
        job = t.jobs[j]
        its_rate = job.pace if job.kind else rate * job.pace
        if job.rate != its_rate:
            settle(t, j, now)
            load(t, j, its_rate - job.rate, now)
            job.rate = its_rate
            job.end_secs = now + (job.left - job.left_at_error) / job.rate
