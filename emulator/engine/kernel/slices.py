"""The simulation that finds late jobs: run only when a job may miss its deadline.

At each step every kind of processor, GPUs first, is filled with jobs in order of arrival from the project of highest
priority; the step lasts to the next end, or one slice. Where no project waits for another's turn it lasts to the
next end in any case.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.queues import NONE_FREE, Queues, comes_before, is_at_limit, segments
from emulator.engine.table import Floats, Ints

LATE: Final = 1e-6  # a job late by less is not: rounding
LONGEST_STEP_PARTS: Final = 10  # a step beyond ten slices is a tenth of the next end
SHORT_STEPS: Final = 100  # this many steps at most are made short for a job that waits beside long ones


class Slices(NamedTuple):
    """One simulation."""

    q: Queues
    start: Ints  # by segment: kind and project
    items: Ints
    size: Ints  # by segment: jobs that have not ended
    least_usage: Floats  # by segment: of its jobs at the start
    left: Floats
    ranks: Floats
    trial_ranks: Floats  # as jobs are given out
    free: Floats
    active: Ints  # the jobs of the next step
    of_app: Ints  # how many of them are of which application, where there are limits
    of_project: Ints


@compiled
def _fill_from_one(s: Slices, k: int, p: int, ranked: bool, period: float, count: int) -> int:
    """Fills a kind for which one project has jobs; returns the number of active jobs."""
    q = s.q
    segment = k * len(q.rank) + p
    free, cpus = s.free[k], s.free[0]
    for c in range(s.size[segment]):
        i = s.items[s.start[segment] + c]
        if free <= NONE_FREE:
            break
        if k == 0 or q.usage[i] <= free + NONE_FREE:
            free -= q.usage[i]
            cpus -= q.cpus[i]
            s.active[count] = i
            count += 1
            if ranked:
                s.trial_ranks[p] += q.unit[p] * q.counted_flops[i] * period
        elif s.least_usage[segment] > free + NONE_FREE:
            break
    s.free[k] = free
    s.free[0] = cpus
    return count


@compiled
def _fill_in_turns(s: Slices, k: int, period: float, cursor: Ints, count: int) -> int:
    """Fills a kind for which several projects have jobs; returns the number of active jobs."""
    q = s.q
    projects = len(q.rank)
    for p in range(projects):
        cursor[p] = 0 if s.size[k * projects + p] else -1
    while s.free[k] > NONE_FREE:
        best = -1
        for p in range(projects):
            if cursor[p] >= 0 and (best < 0 or comes_before(p, best, s.trial_ranks, q.is_last)):
                best = p
        if best < 0:
            break
        segment = k * projects + best
        i = s.items[s.start[segment] + cursor[best]]
        place = cursor[best] + 1
        if is_at_limit(q, i, s.of_app, s.of_project):
            pass  # the next one may be of another application
        elif k == 0 or q.usage[i] <= s.free[k] + NONE_FREE:
            s.free[k] -= q.usage[i]
            if k:
                s.free[0] -= q.cpus[i]
            s.active[count] = i
            count += 1
            if len(s.of_app):
                s.of_app[q.app[i]] += 1
                s.of_project[best] += 1
            s.trial_ranks[best] += q.unit[best] * q.counted_flops[i] * period
        elif s.least_usage[segment] > s.free[k] + NONE_FREE:
            place = s.size[segment]  # none of them fits any more
        cursor[best] = place if place < s.size[segment] else -1
    return count


@compiled
def _fill(s: Slices, instances: Floats, ranked: bool, period: float, cursor: Ints) -> tuple[int, bool]:
    """The jobs of the next step: how many, and whether another project's job may run before the next end."""
    projects = len(s.q.rank)
    kinds = len(instances)
    for k in range(kinds):
        s.free[k] = instances[k]
    for p in range(projects):
        s.trial_ranks[p] = s.ranks[p]
        s.of_project[p] = 0
    limited = len(s.of_app) > 0
    for a in range(len(s.of_app)):
        s.of_app[a] = 0
    count = 0
    takes_turns = False
    for turn in range(kinds):
        k = (turn + 1) % kinds
        owners, only, total = 0, -1, 0
        for p in range(projects):
            size = s.size[k * projects + p]
            if size:
                owners += 1
                only = p
                total += size
        if owners == 0:
            continue
        before = count
        if ranked and (owners > 1 or limited):
            count = _fill_in_turns(s, k, period, cursor, count)
            if count - before < total:
                takes_turns = True
        else:
            count = _fill_from_one(s, k, only, ranked, period, count)
    return count, takes_turns


@compiled
def _advance(s: Slices, count: int, step: float, ranked: bool, end_secs: float, ends: Floats) -> None:
    """All active jobs run for one step."""
    q = s.q
    for a in range(count):
        i = s.active[a]
        p = q.project[i]
        if ranked:
            s.ranks[p] += q.unit[p] * q.counted_flops[i] * step
        s.left[i] -= step
        if s.left[i] <= LATE:
            ends[i] = end_secs
            segment = q.kind[i] * len(q.rank) + p
            first = s.start[segment]
            place = first
            while s.items[place] != i:
                place += 1
            s.size[segment] -= 1
            for other in range(place, first + s.size[segment]):
                s.items[other] = s.items[other + 1]


@compiled
def _step(s: Slices, count: int, takes_turns: bool, period: float, short_steps: int, ends: Floats) -> tuple[float, int]:
    """How long the next step lasts, and how many more may be made short."""
    step = s.left[s.active[0]]
    for a in range(1, count):
        step = min(step, s.left[s.active[a]])
    if not takes_turns:
        return step, short_steps
    if step > LONGEST_STEP_PARTS * period:
        step /= LONGEST_STEP_PARTS
        if short_steps:
            least = step
            for i in range(len(ends)):
                if np.isnan(ends[i]):
                    least = min(least, s.left[i])
            return max(period, least), short_steps - 1
    elif step > period:
        step = period
    return step, short_steps


@making_arrays
def find_ends(
    q: Queues,
    instances: Floats,
    period: float,
    now: float,
    early: float,
    ranked: bool,
    to_last: bool,
    watched: Ints,
    ends: Floats,
) -> int:
    """When jobs end (NaN where it is not found out), until it is known for all watched ones, which are in order of
    their deadlines, whether they are in time, or up to the last deadline; returns the steps."""
    start, items = segments(q, len(instances))
    least_usage = np.full(len(start) - 1, np.inf)
    for i in range(len(q.kind)):
        segment = q.kind[i] * len(q.rank) + q.project[i]
        least_usage[segment] = min(least_usage[segment], q.usage[i])
        ends[i] = np.nan
    n = len(q.kind)
    s = Slices(
        q,
        start,
        items,
        start[1:] - start[:-1],
        least_usage,
        q.left.copy(),
        q.rank.copy(),
        q.rank.copy(),
        instances.copy(),
        np.empty(n, np.int64),
        np.zeros(len(q.app_limit), np.int64),
        np.zeros(len(q.rank), np.int64),
    )
    cursor = np.empty(len(q.rank), np.int64)
    return _simulate(s, instances, period, now, early, ranked, to_last, watched, cursor, ends)


@compiled
def _simulate(
    s: Slices,
    instances: Floats,
    period: float,
    now: float,
    early: float,
    ranked: bool,
    to_last: bool,
    watched: Ints,
    cursor: Ints,
    ends: Floats,
) -> int:
    q = s.q
    pending = len(watched)
    last = q.deadline_secs[watched[pending - 1]]
    at = 0.0
    short_steps = SHORT_STEPS
    steps = 0
    while pending and at < (last if to_last else q.deadline_secs[watched[pending - 1]]) - early - now:
        count, takes_turns = _fill(s, instances, ranked, period, cursor)
        if not count:
            break
        step, short_steps = _step(s, count, takes_turns, period, short_steps, ends)
        at += step
        _advance(s, count, step, ranked, now + at, ends)
        steps += 1
        while pending and not np.isnan(ends[watched[pending - 1]]):
            pending -= 1
    return steps
