"""The round-robin simulation itself: the forecast of the work buffer, and when jobs end.

"One-hour time slices are given to projects in turn" (client scheduling document): whenever an instance is free, the
project that comes first by rank gets it for a slice, or up to the end of the job, for its first job in order of arrival
that has none. A job holds its instance until then. The rank grows by what was given.

By the document the last job of several CPUs may take more than are free. When jobs are chosen it may not, so beside
such jobs CPUs can be idle: ``keeps_to_cpus`` simulates that.
"""

from __future__ import annotations

import math
from typing import Final

from emulator.engine.kernel.compiled import compiled
from emulator.engine.kernel.queues import NONE_FREE, Queues, allowed_devices, comes_before, push, sink
from emulator.engine.table import Floats, Ints

ENDED_SECS: Final = 1e-6  # a job with less left has ended: rounding
ROUNDING: Final = 1e-6  # instances
LATE_SECS: Final = 1e-3  # one that ends later by more is late, whatever the rounding
NOBODY: Final = -1
ALL_KINDS: Final = -1


@compiled
def _begin(q: Queues, only_kind: int) -> None:
    """Queues the jobs of all kinds or of one."""
    n, projects = len(q.jobs), len(q.projects)
    for segment in range(len(q.segments)):
        q.segments[segment].first = n
    for k in range(len(q.kinds)):
        q.kinds[k].free = q.kinds[k].instances
        q.kinds[k].ready = 0
        q.kinds[k].cramped = 0
    for p in range(projects):
        q.projects[p].height = q.projects[p].rank
    for place in range(n):
        job = q.jobs[n - 1 - place]
        if only_kind == ALL_KINDS or job.kind == only_kind:
            segment = q.segments[job.kind * projects + job.project]
            job.next = segment.first
            segment.first = n - 1 - place
            q.kinds[job.kind].ready += 1
            job.rest = job.left
            job.ends = math.nan
    q.head[0].held = 0
    q.head[0].replaced = 0


@compiled
def _give(q: Queues, i: int, at: float) -> float:
    """Gives a ready job its turn, and raises its project's rank; returns when the turn ends."""
    job, head = q.jobs[i], q.head[0]
    secs = min(job.rest, head.slice_secs)
    job.rest -= secs
    if job.rest <= ENDED_SECS:
        job.ends = at + secs
    project = q.projects[job.project]
    q.kinds[job.kind].ready -= 1
    project.height += project.unit * job.counted_flops * secs
    if len(q.apps):
        q.apps[job.app].running += 1
        project.running += 1
    if head.turns < len(q.turns):
        turn = q.turns[head.turns]
        turn.job, turn.begin_secs, turn.end_secs = i, at, at + secs
        turn.is_last = 1 if job.rest <= ENDED_SECS else 0
        head.turns += 1
    return float(at + secs)


@compiled
def _give_out(q: Queues, at: float) -> None:
    """Gives out free instances: GPUs before CPUs."""
    kinds = len(q.kinds)
    if q.head[0].replaced:
        q.head[0].replaced = 0
        return
    for turn in range(kinds):
        k = (turn + 1) % kinds
        kind = q.kinds[k]
        kind.cramped = 0
        if kind.free <= NONE_FREE or kind.ready == 0:
            continue
        for place in range(_give_in_turns(q, k, at)):
            if not _is_kept_off(q, q.slots[place].too_large):
                kind.cramped = 1


@compiled
def _is_kept_off(q: Queues, i: int) -> bool:
    """Whether limits of concurrent jobs, or jobs on all the devices that it may use, prevent a job from running."""
    if not len(q.apps):
        return False
    job = q.jobs[i]
    app, project = q.apps[job.app], q.projects[job.project]
    if 0 < app.limit <= app.running or 0 < project.limit <= project.running:
        return True
    if not job.barred:
        return False
    used = job.usage
    for place in range(q.head[0].held):
        other = q.jobs[q.slots[place].job]
        if other.kind == job.kind and other.barred & job.barred == job.barred:
            used += other.usage
    return bool(used > allowed_devices(q.kinds[job.kind].instances, job.barred) + NONE_FREE)


@compiled
def _is_too_wide(q: Queues, i: int) -> bool:
    """Whether a job takes more CPUs than are free, beside other jobs of CPUs alone."""
    if q.jobs[i].usage <= max(1.0, q.kinds[0].free + NONE_FREE):
        return False
    for place in range(q.head[0].held):
        if not q.jobs[q.slots[place].job].kind:
            return True
    return False


@compiled
def _give_in_turns(q: Queues, k: int, at: float) -> int:
    """Gives out free instances of a kind; returns how many jobs were too large for them."""
    projects, kind, head = len(q.projects), q.kinds[k], q.head[0]
    nobody = len(q.jobs)
    count = 0
    for p in range(projects):
        q.projects[p].offered = q.segments[k * projects + p].first
        q.projects[p].before = NOBODY
    while kind.free > NONE_FREE:
        best = -1
        for p in range(projects):
            if q.projects[p].offered != nobody and (best < 0 or comes_before(q.projects, p, best)):
                best = p
        if best < 0:
            break
        project = q.projects[best]
        i = project.offered
        job = q.jobs[i]
        project.offered = job.next
        is_kept_off = _is_kept_off(q, i)  # the next one may be of another application
        is_too_large = k and not is_kept_off and job.usage > kind.free + NONE_FREE
        if is_too_large:
            q.slots[count].too_large = i
            count += 1
        if is_kept_off or is_too_large or (not k and head.keeps_to_cpus and _is_too_wide(q, i)):
            project.before = i
            continue
        if project.before == NOBODY:
            q.segments[k * projects + best].first = job.next
        else:
            q.jobs[project.before].next = job.next
        kind.free -= job.usage
        if k:
            q.kinds[0].free -= job.cpus
        push(q.slots, head.held, _give(q, i, at), i)
        head.held += 1
    return count


@compiled
def _make_ready(q: Queues, i: int) -> None:
    """Ends the slice of a job: unless it has ended, it is ready again, in its place by arrival."""
    job = q.jobs[i]
    if job.rest <= ENDED_SECS:
        return
    segment = q.segments[job.kind * len(q.projects) + job.project]
    q.kinds[job.kind].ready += 1
    if i < segment.first:
        job.next = segment.first
        segment.first = i
        return
    before = q.jobs[segment.first]
    while before.next < i:
        before = q.jobs[before.next]
    job.next = before.next
    before.next = i


@compiled
def _take_back(q: Queues, at: float) -> None:
    """Frees the instances held up to then, unless they are already given to the next job."""
    head = q.head[0]
    can_replace = _can_replace(q, at)
    while head.held and q.slots[0].until_secs <= at:
        i = q.slots[0].job
        job, last = q.jobs[i], q.slots[head.held - 1]
        _make_ready(q, i)
        if can_replace and _replace(q, at):
            head.replaced = 1
            return
        head.held -= 1
        sink(q.slots, head.held, last.until_secs, last.job)
        q.kinds[job.kind].free += job.usage
        if job.kind:
            q.kinds[0].free += job.cpus
        if len(q.apps):
            q.apps[job.app].running -= 1
            q.projects[job.project].running -= 1


@compiled
def _can_replace(q: Queues, at: float) -> bool:
    """Whether the CPUs are full, GPUs cannot change, and the slice of one job on one CPU ends."""
    held = q.head[0].held
    if not held or q.kinds[0].free > NONE_FREE or len(q.apps):
        return False
    job = q.jobs[q.slots[0].job]
    if job.kind or job.usage != 1.0 or q.kinds[0].free + 1.0 <= NONE_FREE:
        return False
    if (held > 1 and q.slots[1].until_secs <= at) or (held > 2 and q.slots[2].until_secs <= at):
        return False
    for k in range(1, len(q.kinds)):
        if q.kinds[k].free > NONE_FREE and q.kinds[k].ready:
            return False
    return True


@compiled
def _replace(q: Queues, at: float) -> bool:
    """Gives the CPU whose slice is over to the next job, if that takes one CPU, too; returns whether it did."""
    nobody = len(q.jobs)
    best = -1
    for p in range(len(q.projects)):
        if q.segments[p].first != nobody and (best < 0 or comes_before(q.projects, p, best)):
            best = p
    if best < 0:
        return False
    i = q.segments[best].first
    if q.jobs[i].usage != 1.0:
        return False
    q.segments[best].first = q.jobs[i].next
    # As `_take_back` and `_give_out` do; the sum may be rounded.
    q.kinds[0].free += 1.0
    q.kinds[0].free -= 1.0
    sink(q.slots, q.head[0].held, _give(q, i, at), i)
    return True


@compiled
def _all_found(q: Queues, stop: float) -> bool:
    for k in range(len(q.kinds)):
        if q.kinds[k].saturated_secs == stop:
            return False
    return True


@compiled
def forecast(q: Queues, horizon: float) -> int:
    """Simulates up to the horizon, and for kinds that are saturated there one slice more: finds the idle instances now,
    saturated times and shortfalls. Returns the steps.
    """
    _begin(q, ALL_KINDS)
    stop = horizon + q.head[0].slice_secs
    for k in range(len(q.kinds)):
        q.kinds[k].saturated_secs = stop
        q.kinds[k].shortfall_secs = 0.0
    at = 0.0
    steps = 0
    while at < stop and (at < horizon or not _all_found(q, stop)):
        _give_out(q, at)
        until = q.slots[0].until_secs if q.head[0].held else stop
        for k in range(len(q.kinds)):
            kind = q.kinds[k]
            idle = 0.0 if kind.free < 0.0 or kind.cramped else kind.free
            if idle > NONE_FREE:
                kind.saturated_secs = min(kind.saturated_secs, at)
                kind.shortfall_secs += idle * max(0.0, min(until, horizon) - at)
            if steps == 0:
                kind.idle = idle
        at = until
        steps += 1
        _take_back(q, at)
    return steps


@compiled
def find_ends(q: Queues, only_kind: int, watched: Ints, until: Floats, to_end: bool) -> int:
    """Finds when jobs end, in seconds from now (NaN if undetermined). Continues until it is known of all watched jobs,
    which are in order of these times, whether they end by then; where no job waits, ``to_end`` finds the ends of all.
    Returns the steps.
    """
    _begin(q, only_kind)
    pending = len(watched)
    at = 0.0
    steps = 0
    while True:
        _give_out(q, at)
        # Lateness is known before the end: of a job that has its turn, `rest` is what is left after it.
        while pending:
            job = q.jobs[watched[pending - 1]]
            if math.isnan(job.ends) and at + job.rest <= until[pending - 1] + LATE_SECS:
                break
            pending -= 1
        if not pending or not q.head[0].held or q.slots[0].until_secs >= until[pending - 1]:
            return steps
        if to_end and _all_run_on(q):
            _run_to_ends(q)
            return steps
        at = q.slots[0].until_secs
        steps += 1
        _take_back(q, at)


@compiled
def _all_run_on(q: Queues) -> bool:
    """Whether no job waits, and each that has an instance gets it again when its slice is over."""
    for k in range(len(q.kinds)):
        if q.kinds[k].ready:
            return False
    for place in range(q.head[0].held):
        job = q.jobs[q.slots[place].job]
        if not job.kind and q.kinds[0].free + job.usage <= ROUNDING:  # GPU jobs took CPUs
            return False
    return True


@compiled
def _run_to_ends(q: Queues) -> None:
    for place in range(q.head[0].held):
        job, at = q.jobs[q.slots[place].job], q.slots[place].until_secs
        while job.rest > ENDED_SECS:
            secs = min(job.rest, q.head[0].slice_secs)
            job.rest -= secs
            at += secs
            job.ends = at


@compiled
def record(q: Queues, steps_max: int) -> bool:
    """Simulates to the end of all jobs, and records the turns; returns False if their record was full before, or after
    this many steps.
    """
    _begin(q, ALL_KINDS)
    at = 0.0
    for _ in range(steps_max):
        _give_out(q, at)
        if q.head[0].turns == len(q.turns):
            return False
        if not q.head[0].held:
            return True
        at = q.slots[0].until_secs
        _take_back(q, at)
    return False
