"""What the two round-robin simulations start from, and their heaps. Not one of them changes the table."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.jobs import left_secs
from emulator.engine.table import Floats, Ints, Table

REC = 0  # the policies that the kernel knows, for `run.policy`
LTD = 1
LTD_SINGLE = 2
DEBT = 3
NONE_FREE: Final = 1e-9  # instances


class Queues(NamedTuple):
    """The jobs that a simulation runs, in order of arrival, and the ranks of the projects."""

    kind: Ints
    project: Ints
    left: Floats  # seconds that each still takes, with the times in which the computer is off
    app: Ints
    usage: Floats
    cpus: Floats
    counted_flops: Floats
    deadline_secs: Floats
    row: Ints  # of the table
    barred: Ints  # devices that each may not use, as bits
    rank: Floats  # by project
    unit: Floats  # by project: by how much its rank grows per counted FLOP
    tier: Ints  # by project
    app_limit: Ints  # by application, how many of its jobs may run at once; empty if there are no limits
    project_limit: Ints


@compiled
def overall_debt(t: Table, p: int) -> float:
    """A project's debts of all kinds, each weighted with the speed of an instance: FLOP. Under the older policy its one
    debt, in seconds."""
    if t.run[0].policy == LTD_SINGLE:
        return float(t.pairs[p, 0].debt)
    flop = 0.0
    for k in range(len(t.kinds)):
        flop += t.pairs[p, k].debt * t.kinds[k].counted_flops
    return flop


@compiled
def goes_beyond_text(t: Table) -> bool:
    """Whether the default policy is followed, and not a document's letter."""
    return t.run[0].policy == REC and not t.run[0].by_letter


@making_arrays
def new_queues(n: int, projects: int, limits: int) -> Queues:
    """Empty queues, for ``n`` jobs and as many projects as there are, and applications with limits."""
    return Queues(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n),
        np.zeros(n, np.int64),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.empty(projects),
        np.empty(projects),
        np.zeros(projects, np.int64),
        np.zeros(limits, np.int64),
        np.zeros(projects, np.int64),
    )


@making_arrays
def make_queues(t: Table, now: float) -> Queues:
    """The present jobs of projects that are not suspended."""
    run = t.run[0]
    n = 0
    for j in range(run.jobs):
        job = t.jobs[j]
        if not job.done and not t.projects[job.project].suspended:
            n += 1
    projects = len(t.projects)
    q = new_queues(n, projects, len(t.apps) if run.limited else 0)
    i = 0
    for j in range(run.jobs):
        job = t.jobs[j]
        if job.done or t.projects[job.project].suspended:
            continue
        q.kind[i] = job.kind
        q.project[i] = job.project
        q.left[i] = left_secs(t, j, now) / t.kinds[job.kind].up_fraction
        q.app[i] = job.app
        q.usage[i] = job.usage
        q.cpus[i] = job.cpus
        q.counted_flops[i] = job.counted_flops
        q.deadline_secs[i] = job.deadline_secs
        q.row[i] = j
        q.barred[i] = job.barred
        i += 1
    for a in range(len(q.app_limit)):
        q.app_limit[a] = t.apps[a].max_concurrent
    for p in range(projects):
        project = t.projects[p]
        q.project_limit[p] = project.max_concurrent
        if run.last_project_first:
            q.rank[p] = -p
            q.unit[p] = 0.0
        elif run.policy == LTD or run.policy == LTD_SINGLE:
            flops = 1.0 if run.policy == LTD else t.kinds[0].counted_flops
            q.rank[p] = -overall_debt(t, p) / project.share_fraction
            q.unit[p] = 1 / (flops * project.share_fraction)
        else:
            q.rank[p] = project.done_flop * project.inverse
            q.unit[p] = run.growth * project.inverse
            q.tier[p] = project.tier
    return q


@making_arrays
def queues_of(q: Queues, chosen: Ints) -> Queues:
    """The same with these jobs alone."""
    if len(chosen) == len(q.kind):
        return q
    return Queues(
        q.kind[chosen],
        q.project[chosen],
        q.left[chosen],
        q.app[chosen],
        q.usage[chosen],
        q.cpus[chosen],
        q.counted_flops[chosen],
        q.deadline_secs[chosen],
        q.row[chosen],
        q.barred[chosen],
        q.rank,
        q.unit,
        q.tier,
        q.app_limit,
        q.project_limit,
    )


@making_arrays
def segments(q: Queues, kinds: int) -> tuple[Ints, Ints]:
    """The jobs by kind and project: where each of these begins, and the jobs."""
    projects, n = len(q.rank), len(q.kind)
    start = np.zeros(kinds * projects + 1, np.int64)
    for i in range(n):
        start[q.kind[i] * projects + q.project[i] + 1] += 1
    for s in range(kinds * projects):
        start[s + 1] += start[s]
    place = start[:-1].copy()
    items = np.empty(n, np.int64)
    for i in range(n):
        s = q.kind[i] * projects + q.project[i]
        items[place[s]] = i
        place[s] += 1
    return start, items


@compiled
def is_at_limit(q: Queues, i: int, of_app: Ints, of_project: Ints) -> bool:
    """Whether as many jobs of its application, or of its project, run as may run at once."""
    if len(q.app_limit) == 0:
        return False
    limit = q.app_limit[q.app[i]]
    if 0 < limit <= of_app[q.app[i]]:
        return True
    limit = q.project_limit[q.project[i]]
    return bool(0 < limit <= of_project[q.project[i]])


@compiled
def comes_before(p: int, other: int, ranks: Floats, tier: Ints) -> bool:
    """Whether one project is ahead of another that has a smaller number."""
    if tier[p] != tier[other]:
        return bool(tier[p] < tier[other])
    return bool(ranks[p] < ranks[other])


@compiled
def allowed_devices(instances: float, barred: int) -> float:
    """How many of the ``instances`` a job may use; each bit of ``barred`` excludes one."""
    while barred:
        barred &= barred - 1
        instances -= 1.0
    return instances


# A heap of (time, job) in two arrays, the first entry first.


@compiled
def push(times: Floats, items: Ints, n: int, time: float, item: int) -> None:
    """Adds an entry to those n."""
    i = n
    while i > 0:
        parent = (i - 1) >> 1
        if times[parent] < time or (times[parent] == time and items[parent] < item):
            break
        times[i] = times[parent]
        items[i] = items[parent]
        i = parent
    times[i] = time
    items[i] = item


@compiled
def sink(times: Floats, items: Ints, n: int, time: float, item: int) -> None:
    """Puts an entry in the place of the first of n."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        right = child + 1
        if right < n and (
            times[right] < times[child] or (times[right] == times[child] and items[right] < items[child])
        ):
            child = right
        if time < times[child] or (time == times[child] and item < items[child]):
            break
        times[i] = times[child]
        items[i] = items[child]
        i = child
    times[i] = time
    items[i] = item


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
