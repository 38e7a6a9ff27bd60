"""Bounds that hold without a simulation.

They hold for any order in which no instance idles while a job waits for it: once one is idle, fewer jobs than instances
are left. So all are busy at least for (work - that of the longest n - 1 jobs) / n; and no job waits longer than (work -
the remaining work of others by then) / n.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.jobs import left_secs, work_secs
from emulator.engine.kernel.queues import NONE_FREE, Queues, goes_beyond_text
from emulator.engine.table import Table

# The soonest time of the next choice: a job with less time to spare runs for its deadline now.
MIN_MARGIN_SECS: Final = 60.0
SLACK_SECS: Final = 1.0  # the sum of work is kept up to date with rounding errors
CERTAIN_SECS: Final = 1e-3  # a job late by more than this is late whatever the rounding
DOUBT: Final = 0.3  # a job may need this fraction more than its estimate leaves, so it is due earlier
ROUNDS: Final = 60


@compiled
def min_saturated_secs(t: Table, k: int, now: float) -> float:
    """A time up to which all instances of that kind are certainly busy, in constant time, or 0."""
    run, kind = t.run[0], t.kinds[k]
    if not kind.present:
        return math.inf
    if run.any_suspended or run.limited:
        return 0.0
    n = kind.instances
    work = work_secs(t, k, now) / n - kind.longest_secs - SLACK_SECS
    if work <= 0.0:
        return 0.0
    if run.uneven and k == 0 and kind.min_usage != kind.max_usage:
        work *= n / (n + kind.max_usage)
    return work / kind.up_fraction


@making_arrays
def least_saturated_secs(t: Table, k: int, now: float) -> float:
    """A closer bound, from all jobs: all instances are busy until so few jobs are unfinished that they leave one idle,
    and no job frees one before its remaining time is over.
    """
    bound = min_saturated_secs(t, k, now)
    kind = t.kinds[k]
    if t.run[0].limited or not kind.present:
        return bound
    count = 0
    all_whole = True
    most = work = 0.0
    left, usage = np.empty(t.run[0].jobs), np.empty(t.run[0].jobs)
    for j in range(t.run[0].jobs):
        job = t.jobs[j]
        if not job.done and job.kind == k and not t.projects[job.project].suspended:
            left[count] = left_secs(t, j, now)
            usage[count] = job.usage
            work += left[count] * usage[count]
            all_whole = all_whole and job.usage == 1.0
            most = max(most, job.usage)
            count += 1
    n = kind.instances
    if all_whole:
        last = count - int(n)
        if last < 0:
            return bound
        parted = np.partition(left[:count], last)
        for i in range(last + 1, count):
            work -= parted[i]
        return max(bound, (max(work / n, parted[last]) - SLACK_SECS) / kind.up_fraction)
    room = n
    for i in np.argsort(-left[:count]):
        work -= left[i] * min(usage[i], room)
        room -= usage[i]
        if room <= 0.0:
            return max(bound, (max(work / (n if k else n + most), left[i]) - SLACK_SECS) / kind.up_fraction)
    return bound


@compiled
def all_done_secs(t: Table, k: int, now: float) -> float:
    """A time after which all jobs of that kind are certainly done, in whatever order they run."""
    kind = t.kinds[k]
    if t.run[0].limited:  # at least one job runs at a time
        one_by_one = 0.0
        for other in range(len(t.kinds)):
            one_by_one += work_secs(t, other, now) / t.kinds[other].min_usage / t.kinds[other].up_fraction
        return one_by_one + SLACK_SECS
    n, longest = kind.instances, kind.longest_secs
    if t.run[0].uneven:
        if k:
            n = max(n - kind.max_usage + min(1.0, kind.min_usage), kind.min_usage)
        else:
            n -= cpus_beside(t)
            if n <= NONE_FREE:
                return math.inf
            longest *= 1 + kind.max_usage / n
    return (work_secs(t, k, now) / n + longest + SLACK_SECS) / kind.up_fraction


@compiled
def cpus_beside(t: Table) -> float:
    """The most CPUs that GPU jobs may take."""
    cpus = 0.0
    for k in range(len(t.kinds)):
        cpus += t.kinds[k].beside * t.kinds[k].instances
    return cpus


@compiled
def early_secs(t: Table) -> float:
    """How much earlier all deadlines are taken to be."""
    run = t.run[0]
    return float(run.buffer_min_secs) if run.buffer_before_deadline else MIN_MARGIN_SECS


@compiled
def may_miss_deadlines(t: Table, now: float) -> bool:
    """Whether any job might miss its deadline; False is certain, and remains so until a job arrives."""
    run = t.run[0]
    if now < run.safe_until_secs:
        return False
    safe_until = math.inf
    for k in range(len(t.kinds)):
        first = math.inf
        longest = 0.0
        for j in range(run.jobs):
            job = t.jobs[j]
            if not job.done and job.kind == k:
                first = min(first, job.deadline_secs)
                longest = max(longest, job.estimate_secs)
        if first == math.inf:
            continue
        first -= early_secs(t)
        if goes_beyond_text(t):
            first -= DOUBT * longest / t.kinds[k].up_fraction
        done_secs = all_done_secs(t, k, now)
        if now + done_secs > first:
            t.kinds[k].longest_secs = longest  # the longest may be gone
            done_secs = all_done_secs(t, k, now)
            if now + done_secs > first:
                return True
        safe_until = min(safe_until, first - done_secs - SLACK_SECS)
    run.safe_until_secs = safe_until
    return False


@compiled
def longest_wait_secs(t: Table, q: Queues, k: int) -> float:
    """A bound on the wait of any job of that kind; infinity if GPU jobs may take all CPUs."""
    kind = t.kinds[k]
    n = kind.instances
    if t.run[0].uneven:
        if k:
            if kind.max_usage != 1.0 or kind.min_usage != 1.0:
                n = max(n - kind.max_usage + min(1.0, kind.min_usage), kind.min_usage)
        else:
            n -= cpus_beside(t)
    if n <= NONE_FREE:
        return math.inf
    wait = 0.0
    for i in range(len(q.jobs)):
        if q.jobs[i].kind == k:
            wait += q.jobs[i].left * q.jobs[i].usage
    wait /= n
    for _ in range(ROUNDS):
        less = 0.0
        for i in range(len(q.jobs)):
            if q.jobs[i].kind == k:
                less += min(q.jobs[i].left, wait) * q.jobs[i].usage
        less /= n
        if less >= wait - SLACK_SECS:
            break
        wait = less
    return wait + SLACK_SECS
