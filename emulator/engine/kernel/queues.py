"""The initial state of the round-robin simulation, and its heap. Does not change the table."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from emulator.engine.kernel.compiled import compiled, making_arrays, zero_rows
from emulator.engine.kernel.jobs import left_secs
from emulator.engine.table import Floats, Table, row_type

REC = 0  # the policies that the kernel knows, for `run.policy`
LTD = 1
LTD_SINGLE = 2
DEBT = 3
NONE_FREE: Final = 1e-9  # instances
MAX_SLICES: Final = 2000  # times up to the end of the buffer


# Rows of a simulation: a job that it runs, a project, and a kind of processor. `row`: of the table. `next`: the next
# ready job of the same project and kind in order of arrival; if there is none, the number of jobs. `left` is in
# seconds, including the times in which the computer is off, and `rest` what has not been given out yet. `unit`: how
# much the rank grows per counted FLOP, to the `height`. `offered` and `before`: while jobs of a kind are given out, the
# next one and the one before it.
JOB: Final = row_type("row kind project app barred next", "left usage cpus counted_flops deadline_secs rest ends")
PROJECT: Final = row_type("tier limit running offered before", "rank unit height")
KIND: Final = row_type("ready cramped", "instances free saturated_secs shortfall_secs idle")
APP: Final = row_type("limit running", "")
SEGMENT: Final = row_type("first", "")  # per kind and project: the first ready job
# The heap of what is given out: which job has an instance up to when. `too_large`: a list of jobs that do not fit.
SLOT: Final = row_type("job too_large", "until_secs")
# Each turn that was given, for display.
TURN: Final = row_type("job is_last", "begin_secs end_secs")
HEAD: Final = row_type("held keeps_to_cpus replaced turns", "slice_secs")


class Queues(NamedTuple):
    """A simulation: the jobs that it runs, in order of arrival, and whose turn it is."""

    jobs: Any
    projects: Any
    kinds: Any
    segments: Any
    slots: Any
    apps: Any  # none if there are no limits
    turns: Any  # none unless they are recorded
    head: Any  # one row


@compiled
def overall_debt(t: Table, p: int) -> float:
    """A project's debts of all kinds, each weighted with the speed of an instance: FLOP. Under the older policy its one
    debt, in seconds.
    """
    if t.run[0].policy == LTD_SINGLE:
        return float(t.pairs[p, 0].debt)
    flop = 0.0
    for k in range(len(t.kinds)):
        flop += t.pairs[p, k].debt * t.kinds[k].counted_flops
    return flop


@compiled
def goes_beyond_text(t: Table) -> bool:
    """Whether the default policy is followed, rather than a document's letter."""
    return t.run[0].policy == REC and not t.run[0].by_letter


@making_arrays
def new_queues(t: Table, n: int, turns: int) -> Queues:
    """Queues for ``n`` jobs; up to as many ``turns`` are recorded."""
    projects, kinds = len(t.projects), len(t.kinds)
    q = Queues(
        zero_rows(n, JOB),
        zero_rows(projects, PROJECT),
        zero_rows(kinds, KIND),
        zero_rows(kinds * projects, SEGMENT),
        zero_rows(n + 1, SLOT),
        zero_rows(len(t.apps) if t.run[0].limited else 0, APP),
        zero_rows(turns, TURN),
        zero_rows(1, HEAD),
    )
    for a in range(len(q.apps)):
        q.apps[a].limit = t.apps[a].max_concurrent
    for k in range(kinds):
        q.kinds[k].instances = t.kinds[k].instances
    q.head[0].slice_secs = max(t.run[0].period_secs, t.run[0].buffer_total_secs / MAX_SLICES)
    return q


@making_arrays
def make_queues(t: Table, now: float, turns: int) -> Queues:
    """Queues with the present jobs of projects that are not suspended."""
    run = t.run[0]
    n = 0
    for j in range(run.jobs):
        if not t.jobs[j].done and not t.projects[t.jobs[j].project].suspended:
            n += 1
    q = new_queues(t, n, turns)
    i = 0
    for j in range(run.jobs):
        job = t.jobs[j]
        if job.done or t.projects[job.project].suspended:
            continue
        queued = q.jobs[i]
        queued.row = j
        queued.kind, queued.project, queued.app, queued.barred = job.kind, job.project, job.app, job.barred
        queued.left = left_secs(t, j, now) / t.kinds[job.kind].up_fraction
        queued.usage, queued.cpus, queued.counted_flops = job.usage, job.cpus, job.counted_flops
        queued.deadline_secs = job.deadline_secs
        i += 1
    for p in range(len(t.projects)):
        project, queued = t.projects[p], q.projects[p]
        queued.limit = project.max_concurrent
        if run.last_project_first:
            queued.rank = -p
        elif run.policy == LTD or run.policy == LTD_SINGLE:
            flops = 1.0 if run.policy == LTD else t.kinds[0].counted_flops
            queued.rank = -overall_debt(t, p) / project.share_fraction
            queued.unit = 1 / (flops * project.share_fraction)
        else:
            queued.rank = project.done_flop * project.inverse
            queued.unit = run.growth * project.inverse
            queued.tier = project.tier
    return q


@compiled
def comes_before(projects: Any, p: int, other: int) -> bool:
    """Whether one project is ahead of another that has a smaller number."""
    one, two = projects[p], projects[other]
    if one.tier != two.tier:
        return bool(one.tier < two.tier)
    return bool(one.height < two.height)


@compiled
def allowed_devices(instances: float, barred: int) -> float:
    """How many of the ``instances`` a job may use; each bit of ``barred`` excludes one."""
    while barred:
        barred &= barred - 1
        instances -= 1.0
    return instances


@compiled
def push(slots: Any, n: int, until_secs: float, job: int) -> None:
    """Adds an entry to the n of the heap."""
    i = n
    while i > 0:
        parent = (i - 1) >> 1
        above = slots[parent]
        if above.until_secs < until_secs or (above.until_secs == until_secs and above.job < job):
            break
        slots[i].until_secs = above.until_secs
        slots[i].job = above.job
        i = parent
    slots[i].until_secs = until_secs
    slots[i].job = job


@compiled
def sink(slots: Any, n: int, until_secs: float, job: int) -> None:
    """Replaces the first entry of a heap of n."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n:
            left, right = slots[child], slots[child + 1]
            if right.until_secs < left.until_secs or (right.until_secs == left.until_secs and right.job < left.job):
                child += 1
        below = slots[child]
        if until_secs < below.until_secs or (until_secs == below.until_secs and job < below.job):
            break
        slots[i].until_secs = below.until_secs
        slots[i].job = below.job
        i = child
    slots[i].until_secs = until_secs
    slots[i].job = job


@compiled
def add_to_least(loads: Floats, secs: float) -> None:
    """Adds to the smallest of a heap of loads (heapq.heapreplace)."""
    n = len(loads)
    value = loads[0] + secs
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and loads[child + 1] < loads[child]:
            child += 1
        if value <= loads[child]:
            break
        loads[i] = loads[child]
        i = child
    loads[i] = value
