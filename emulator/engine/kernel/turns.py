"""The round-robin simulation itself: the forecast of the work buffer, and when jobs end.

"One-hour time slices are given to projects in turn" (client scheduling document): whenever an instance is free, the
project that comes first by rank gets it for a slice, or up to the end of the job, for its first job in order of arrival
that has none. A job keeps its instance until then. The rank grows by what was given.

By the document the last job of several CPUs may take more than are free. When jobs are chosen it may not, so beside
such jobs CPUs can be idle: ``keeps_to_cpus`` simulates that.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.queues import (
    NONE_FREE,
    Queues,
    allowed_devices,
    comes_before,
    is_at_limit,
    push,
    segments,
    sink,
)
from emulator.engine.table import Floats, Ints

ENDED_SECS: Final = 1e-6  # a job with less left has ended: rounding
LATE_SECS: Final = 1e-3  # one that ends later by more is late, whatever the rounding
NOT_LOOKED_FOR: Final = -1
NO_MORE: Final = -2


class Turns(NamedTuple):
    """One simulation. A segment has the jobs of one project for one kind, in order of arrival."""

    q: Queues
    start: Ints  # by segment
    items: Ints
    place: Ints  # by job: in `items`
    first: Ints  # by segment: no job before this place is ready
    ready: Ints  # by segment: how many are
    ready_of_kind: Ints
    is_given: Any  # by job: it has an instance, or has ended
    left: Floats
    ends: Floats  # by job: NaN until it is given its last slice
    ranks: Floats
    free: Floats  # by kind
    instances: Floats
    cramped: Any  # by kind: a job waits that is just too large for what is free
    times: Floats  # heap: up to when which job has an instance
    holders: Ints
    held: Ints  # one number: how many
    of_app: Ints  # how many of its jobs have an instance, where there are limits
    of_project: Ints
    too_large: Ints  # jobs that do not fit into what is free
    keeps_to_cpus: bool


@making_arrays
def make_turns(q: Queues, instances: Floats, keeps_to_cpus: bool) -> Turns:
    """The simulation at its start."""
    kinds, projects, n = len(instances), len(q.rank), len(q.kind)
    start, items = segments(q, kinds)
    place = np.empty(n, np.int64)
    for c in range(n):
        place[items[c]] = c
    ready_of_kind = np.zeros(kinds, np.int64)
    for k in range(kinds):
        ready_of_kind[k] = start[(k + 1) * projects] - start[k * projects]
    return Turns(
        q,
        start,
        items,
        place,
        start[:-1].copy(),
        start[1:] - start[:-1],
        ready_of_kind,
        np.zeros(n, np.bool_),
        q.left.copy(),
        np.full(n, np.nan),
        q.rank.copy(),
        instances.copy(),
        instances,
        np.zeros(kinds, np.bool_),
        np.empty(n + 1),
        np.empty(n + 1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(len(q.app_limit), np.int64),
        np.zeros(projects, np.int64),
        np.empty(n, np.int64),
        keeps_to_cpus,
    )


@compiled
def _next_ready(s: Turns, segment: int, place: int) -> int:
    """The next place of the segment with a job that is ready, or its end."""
    end = s.start[segment + 1]
    while place < end and s.is_given[s.items[place]]:
        place += 1
    return place


@compiled
def _give(s: Turns, i: int, at: float, slice_secs: float) -> float:
    """A job that has its turn: up to when, and its project's rank."""
    q = s.q
    secs = s.left[i] if s.left[i] < slice_secs else slice_secs
    s.is_given[i] = True
    s.left[i] -= secs
    if s.left[i] <= ENDED_SECS:
        s.ends[i] = at + secs
    p = q.project[i]
    s.ready[q.kind[i] * len(q.rank) + p] -= 1
    s.ready_of_kind[q.kind[i]] -= 1
    s.ranks[p] += q.unit[p] * q.counted_flops[i] * secs
    if len(s.of_app):
        s.of_app[q.app[i]] += 1
        s.of_project[p] += 1
    return at + secs


@compiled
def _give_out(s: Turns, k: int, at: float, slice_secs: float, cursor: Ints) -> None:
    """Gives out what is free of a kind."""
    s.cramped[k] = False
    if s.free[k] <= NONE_FREE or s.ready_of_kind[k] == 0:
        return
    count = _give_in_turns(s, k, at, slice_secs, cursor)
    for place in range(count):
        if not _is_kept_off(s, s.too_large[place]):
            s.cramped[k] = True


@compiled
def _is_kept_off(s: Turns, i: int) -> bool:
    """Whether limits of jobs at once, or jobs on all the devices that it may use, keep a job from running."""
    q = s.q
    if is_at_limit(q, i, s.of_app, s.of_project):
        return True
    barred = q.barred[i]
    if not barred:
        return False
    used = q.usage[i]
    for place in range(s.held[0]):
        other = s.holders[place]
        if q.kind[other] == q.kind[i] and q.barred[other] & barred == barred:
            used += q.usage[other]
    return used > allowed_devices(s.instances[q.kind[i]], barred) + NONE_FREE


@compiled
def _is_too_wide(s: Turns, i: int) -> bool:
    """Whether a job takes more CPUs than are free, beside other jobs of CPUs alone."""
    q = s.q
    if q.usage[i] <= max(1.0, s.free[0] + NONE_FREE):
        return False
    for place in range(s.held[0]):
        if not q.kind[s.holders[place]]:
            return True
    return False


@compiled
def _give_in_turns(s: Turns, k: int, at: float, slice_secs: float, cursor: Ints) -> int:
    """Gives out what is free of a kind; returns how many jobs were too large for what was free."""
    q = s.q
    projects = len(q.rank)
    count = 0
    for p in range(projects):
        cursor[p] = NOT_LOOKED_FOR if s.ready[k * projects + p] else NO_MORE
    while s.free[k] > NONE_FREE:
        best = -1
        for p in range(projects):
            if cursor[p] != NO_MORE and (best < 0 or comes_before(p, best, s.ranks, q.tier)):
                best = p
        if best < 0:
            break
        segment = k * projects + best
        place = cursor[best]
        if place == NOT_LOOKED_FOR:
            place = _next_ready(s, segment, s.first[segment])
            s.first[segment] = place
        i = s.items[place]
        if _is_kept_off(s, i):
            pass  # the next one may be of another application
        elif k and q.usage[i] > s.free[k] + NONE_FREE:
            s.too_large[count] = i
            count += 1
        elif not k and s.keeps_to_cpus and _is_too_wide(s, i):
            pass  # CPUs are idle beside it
        else:
            s.free[k] -= q.usage[i]
            if k:
                s.free[0] -= q.cpus[i]
            push(s.times, s.holders, s.held[0], _give(s, i, at, slice_secs), i)
            s.held[0] += 1
        place = _next_ready(s, segment, place + 1)
        cursor[best] = place if place < s.start[segment + 1] else NO_MORE
    return count


@compiled
def _make_ready(s: Turns, i: int) -> None:
    """The slice of a job is over. One that has ended stays given."""
    if s.left[i] > ENDED_SECS:
        segment = s.q.kind[i] * len(s.q.rank) + s.q.project[i]
        s.is_given[i] = False
        s.ready[segment] += 1
        s.ready_of_kind[s.q.kind[i]] += 1
        if s.place[i] < s.first[segment]:
            s.first[segment] = s.place[i]


@compiled
def _take_back(s: Turns, at: float) -> None:
    """What is held up to then is free."""
    while s.held[0] and s.times[0] <= at:
        i = s.holders[0]
        s.held[0] -= 1
        n = s.held[0]
        sink(s.times, s.holders, n, s.times[n], s.holders[n])
        s.free[s.q.kind[i]] += s.q.usage[i]
        if s.q.kind[i]:
            s.free[0] += s.q.cpus[i]
        if len(s.of_app):
            s.of_app[s.q.app[i]] -= 1
            s.of_project[s.q.project[i]] -= 1
        _make_ready(s, i)


@compiled
def _book_idle(
    s: Turns, k: int, at: float, until: float, horizon: float, saturated: Floats, shortfall: Floats
) -> float:
    """Books what of a kind is idle until then; returns how much it is."""
    idle = 0.0 if s.free[k] < 0.0 or s.cramped[k] else s.free[k]
    if idle > NONE_FREE:
        saturated[k] = min(saturated[k], at)
        shortfall[k] += idle * max(0.0, min(until, horizon) - at)
    return idle


@compiled
def _all_found(saturated: Floats, stop: float) -> bool:
    for k in range(len(saturated)):
        if saturated[k] == stop:
            return False
    return True


@compiled
def _can_replace(s: Turns) -> bool:
    """Whether the CPUs are full and GPUs cannot change, so that CPU slices that end one at a time need only be
    replaced."""
    if s.free[0] > NONE_FREE or len(s.of_app):
        return False
    for k in range(1, len(s.free)):
        if s.free[k] > NONE_FREE and s.ready_of_kind[k]:
            return False
    return True


@compiled
def _successor(s: Turns, i: int) -> int:
    """The job that follows one whose slice is over, -1 if that must be found in the general way: its project's turn or
    another's comes next, on the same one CPU."""
    q = s.q
    p = q.project[i]
    goes_on = s.left[i] > ENDED_SECS
    _make_ready(s, i)
    best = -1
    for other in range(len(q.rank)):
        if s.ready[other] and (best < 0 or comes_before(other, best, s.ranks, q.tier)):
            best = other
    if best >= 0:
        place = _next_ready(s, best, s.first[best])
        s.first[best] = place
        follower = s.items[place]
        if q.usage[follower] == 1.0:
            return int(follower)
    if goes_on:  # undo it
        s.is_given[i] = True
        s.ready[p] -= 1
        s.ready_of_kind[0] -= 1
    return -1


@making_arrays
def forecast(
    q: Queues,
    instances: Floats,
    slice_secs: float,
    horizon: float,
    saturated: Floats,
    shortfall: Floats,
    idle_now: Floats,
    keeps_to_cpus: bool,
) -> int:
    """Simulates up to the horizon, and for kinds that are saturated there one slice more; returns the steps."""
    cursor = np.empty(len(q.rank), np.int64)
    return _simulate(
        make_turns(q, instances, keeps_to_cpus), slice_secs, horizon, cursor, saturated, shortfall, idle_now
    )


@compiled
def _simulate(
    s: Turns,
    slice_secs: float,
    horizon: float,
    cursor: Ints,
    saturated: Floats,
    shortfall: Floats,
    idle_now: Floats,
) -> int:
    kinds = len(s.free)
    stop = horizon + slice_secs
    for k in range(kinds):
        saturated[k] = stop
        shortfall[k] = 0.0
    at = 0.0
    steps = 0
    while at < stop and (at < horizon or not _all_found(saturated, stop)):
        for turn in range(kinds):
            _give_out(s, (turn + 1) % kinds, at, slice_secs, cursor)
        until = s.times[0] if s.held[0] else stop
        for k in range(kinds):
            idle = _book_idle(s, k, at, until, horizon, saturated, shortfall)
            if steps == 0:
                idle_now[k] = idle
        at = until
        steps += 1
        # Nearly all slices of a forecast are given out here.
        if _can_replace(s):
            while s.held[0] and at < stop and (at < horizon or not _all_found(saturated, stop)):
                if not _replace(s, at, slice_secs):
                    break
                until = s.times[0]
                for k in range(kinds):
                    _book_idle(s, k, at, until, horizon, saturated, shortfall)
                at = until
                steps += 1
        _take_back(s, at)
    return steps


@compiled
def _replace(s: Turns, at: float, slice_secs: float) -> bool:
    """Gives the CPU whose slice is over to the next job, where nothing else can change; returns whether it did."""
    i = s.holders[0]
    if s.q.kind[i] or s.q.usage[i] != 1.0 or s.free[0] + 1.0 <= NONE_FREE:
        return False
    if (s.held[0] > 1 and s.times[1] <= at) or (s.held[0] > 2 and s.times[2] <= at):
        return False
    follower = _successor(s, i)
    if follower < 0:
        return False
    # As `_take_back` and `_give_out` do; the sum may be rounded.
    s.free[0] += 1.0
    s.free[0] -= 1.0
    sink(s.times, s.holders, s.held[0], _give(s, follower, at, slice_secs), follower)
    return True


@making_arrays
def find_ends(q: Queues, instances: Floats, slice_secs: float, watched: Ints, until: Floats, ends: Floats) -> int:
    """When jobs end, in seconds from now (NaN where it is not found out). Goes on until it is known of all watched
    jobs, which are in order of these times, whether they end by then; returns the steps."""
    s = make_turns(q, instances, False)
    steps = _simulate_to_ends(s, slice_secs, watched, until, np.empty(len(q.rank), np.int64))
    ends[:] = s.ends
    return steps


@compiled
def _simulate_to_ends(s: Turns, slice_secs: float, watched: Ints, until: Floats, cursor: Ints) -> int:
    kinds = len(s.free)
    pending = len(watched)
    at = 0.0
    steps = 0
    while True:
        for turn in range(kinds):
            _give_out(s, (turn + 1) % kinds, at, slice_secs, cursor)
        goes_on = True
        while goes_on:
            # That a job ends too late is known before it ends: of one that has its turn, `left` is what is left after.
            while pending and (
                not np.isnan(s.ends[watched[pending - 1]])
                or at + s.left[watched[pending - 1]] > until[pending - 1] + LATE_SECS
            ):
                pending -= 1
            if not pending or not s.held[0] or s.times[0] >= until[pending - 1]:
                return steps
            at = s.times[0]
            steps += 1
            goes_on = _can_replace(s) and _replace(s, at, slice_secs)
        _take_back(s, at)
