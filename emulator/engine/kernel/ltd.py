"""The policies of long-term debts (emulator.engine.policies.long_term_debt)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from emulator.engine.kernel.bounds import min_saturated_secs
from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.queues import LTD_SINGLE, overall_debt
from emulator.engine.kernel.rec import ANY_JOB_SECS, MAX_UNFINISHED, NOBODY, can_ask
from emulator.engine.kernel.simulations import forecast
from emulator.engine.scenario import DAY_SECS
from emulator.engine.table import Table
from emulator.engine.timeline.reasons import Reason

MIN_RECHECK_SECS: Final = 60.0
MAX_BACKOFF_SECS: Final = DAY_SECS
FETCH_MAJOR: Final = int(Reason.FETCH_MAJOR)
FETCH_MINOR: Final = int(Reason.FETCH_MINOR)
FETCH_CPU_SHORTFALL: Final = int(Reason.FETCH_CPU_SHORTFALL)
FETCH_STARVED: Final = int(Reason.FETCH_STARVED)


@compiled
def _is_eligible(t: Table, p: int, k: int, begin: float) -> bool:
    project, pair = t.projects[p], t.pairs[p, k]
    if not project.attached or project.suspended or project.no_new_tasks:
        return False
    if not t.run[0].eligibility_rule or t.run[0].policy == LTD_SINGLE:
        return True
    return bool(pair.backoff_until_secs <= begin and pair.backoff_interval_secs < MAX_BACKOFF_SECS)


@making_arrays
def _book(t: Table, k: int, begin: float, elapsed_secs: float) -> None:
    """Books one kind's time. Each eligible project is owed its part and charged for its use; the mean change is
    subtracted from them, then the largest debt from all.
    """
    projects = len(t.projects)
    shares = 0.0
    for p in range(projects):
        if _is_eligible(t, p, k, begin):
            shares += t.projects[p].share
    owed_secs = elapsed_secs * t.kinds[k].instances
    charged_part = _charged_part(t, k)
    changes = np.zeros(projects)
    count, total = 0, 0.0
    for p in range(projects):
        if _is_eligible(t, p, k, begin):
            owed = owed_secs * t.projects[p].share / shares if shares else 0.0
            used = elapsed_secs * t.pairs[p, k].busy * charged_part if t.pairs[p, k].busy else 0.0
            changes[p] = owed - used
            total += changes[p]
            count += 1
    mean = total / count if count else 0.0
    largest = -math.inf
    for p in range(projects):
        if not t.projects[p].attached:
            continue
        if _is_eligible(t, p, k, begin):
            t.pairs[p, k].debt = t.pairs[p, k].debt + changes[p] - mean
        largest = max(largest, t.pairs[p, k].debt)
    for p in range(projects):
        if t.projects[p].attached:
            t.pairs[p, k].debt -= largest


@compiled
def _charged_part(t: Table, k: int) -> float:
    """Below 1 where jobs claim more instances than there are."""
    claimed = 0.0
    for p in range(len(t.projects)):
        if t.projects[p].attached:
            claimed += t.pairs[p, k].busy
    return t.kinds[k].instances / claimed if claimed > t.kinds[k].instances else 1.0


@compiled
def accrue(t: Table, now: float) -> None:
    """Books the time until now, in parts where a back-off ended within it."""
    run = t.run[0]
    start = run.accrued_secs
    run.accrued_secs = now
    if now <= start:
        return
    for k in range(1 if run.policy == LTD_SINGLE else len(t.kinds)):
        if not t.kinds[k].active:
            continue
        begin = start
        while begin < now:
            end = now
            for p in range(len(t.projects)):
                if t.projects[p].attached and begin < t.pairs[p, k].backoff_until_secs < end:
                    end = t.pairs[p, k].backoff_until_secs
            _book(t, k, begin, end - begin)
            begin = end


@making_arrays
def find_order(t: Table, now: float) -> int:
    """Puts the projects that may be asked into `order`, the largest debt first; returns how many."""
    debts = np.empty(len(t.projects))
    count = 0
    for p in range(len(t.projects)):
        if not can_ask(t, p, now) or t.projects[p].unfinished > MAX_UNFINISHED:
            continue
        debts[p] = overall_debt(t, p)
        place = count
        while place > 0 and debts[t.projects[place - 1].order] < debts[p]:
            t.projects[place].order = t.projects[place - 1].order
            place -= 1
        t.projects[place].order = p
        count += 1
    return count


@compiled
def _is_backed_off(t: Table, p: int, k: int, now: float) -> bool:
    return bool(t.pairs[p, k].backoff_until_secs > now)


@compiled
def _is_overworked(t: Table, p: int, k: int) -> bool:
    run = t.run[0]
    if t.pairs[p, k].debt >= -run.period_secs:
        return False
    if run.eligibility_rule:
        return True
    greatest = -math.inf
    for other in range(len(t.projects)):
        if t.projects[other].attached:
            greatest = max(greatest, overall_debt(t, other))
    return bool(overall_debt(t, p) < greatest - run.period_secs * t.kinds[k].counted_flops)


@compiled
def _major_shortfall(t: Table, count: int, now: float) -> tuple[int, int, int]:
    for turn in range(len(t.kinds)):
        k = (turn + 1) % len(t.kinds)
        if t.kinds[k].saturated_secs < t.run[0].buffer_min_secs:
            for place in range(count):
                if not _is_backed_off(t, t.projects[place].order, k, now):
                    return t.projects[place].order, FETCH_MAJOR, k
    return NOBODY


@compiled
def _minor_shortfall(t: Table, count: int, now: float) -> tuple[int, int, int]:
    run = t.run[0]
    for turn in range(len(t.kinds)):
        k = (turn + 1) % len(t.kinds)
        if run.buffer_min_secs <= t.kinds[k].saturated_secs < run.buffer_total_secs:
            for place in range(count):
                p = t.projects[place].order
                if not _is_backed_off(t, p, k, now) and not _is_overworked(t, p, k):
                    return p, FETCH_MINOR, k
    return NOBODY


@compiled
def _starved_project(t: Table, count: int, now: float) -> tuple[int, int, int]:
    for turn in range(len(t.kinds)):
        k = (turn + 1) % len(t.kinds)
        for place in range(count):
            p = t.projects[place].order
            if not t.projects[p].unfinished and not _is_backed_off(t, p, k, now) and not _is_overworked(t, p, k):
                return p, FETCH_STARVED, k
    return NOBODY


@compiled
def fetch(t: Table, now: float) -> tuple[int, int, int]:
    """Decides whom to ask, for which reason and kind (`NOBODY`: nobody, and `fetch_at` is when to look again)."""
    run = t.run[0]
    if run.policy == LTD_SINGLE:
        return _fetch_for_cpus(t, now)
    kinds = len(t.kinds)
    count = find_order(t, now)
    any_starved = False
    for place in range(count):
        if not t.projects[t.projects[place].order].unfinished:
            any_starved = True
    least = math.inf
    for k in range(kinds):
        least = min(least, min_saturated_secs(t, k, now))
    if not any_starved and least > run.buffer_total_secs:
        run.fetch_at = now + max(MIN_RECHECK_SECS, least - run.buffer_total_secs)
        return NOBODY
    forecast(t, now)
    asked = _major_shortfall(t, count, now)
    if asked[0] < 0:
        asked = _minor_shortfall(t, count, now)
    if asked[0] < 0:
        asked = _starved_project(t, count, now)
    if asked[0] < 0:
        run.fetch_at = now + max(MIN_RECHECK_SECS, _ahead_secs(t, now))
        return NOBODY
    for k in range(kinds):
        is_asked = asked[1] != FETCH_MAJOR or k == asked[2]
        t.kinds[k].asked_secs = t.kinds[k].shortfall_secs if is_asked else 0.0
        t.kinds[k].asked_instances = t.kinds[k].idle if is_asked else 0.0
        t.kinds[k].delay_secs = 0.0
    if asked[1] == FETCH_STARVED:  # perhaps without a shortfall
        t.kinds[asked[2]].asked_secs = max(t.kinds[asked[2]].asked_secs, ANY_JOB_SECS)
    return asked


@compiled
def _fetch_for_cpus(t: Table, now: float) -> tuple[int, int, int]:
    """The same with one debt and one number."""
    run = t.run[0]
    least = min_saturated_secs(t, 0, now)
    if least > run.buffer_total_secs:
        run.fetch_at = now + max(MIN_RECHECK_SECS, least - run.buffer_total_secs)
        return NOBODY
    forecast(t, now)
    cpu_secs = t.kinds[0].shortfall_secs
    if cpu_secs <= 0.0:
        run.fetch_at = now + max(MIN_RECHECK_SECS, t.kinds[0].saturated_secs - run.buffer_total_secs)
        return NOBODY
    if not find_order(t, now):
        run.fetch_at = max(next_allowed(t, now), now + 1.0)
        return NOBODY
    for k in range(len(t.kinds)):
        t.kinds[k].asked_secs = min(cpu_secs, t.kinds[k].shortfall_secs)
        t.kinds[k].asked_instances = 0.0
        t.kinds[k].delay_secs = 0.0
    return t.projects[0].order, FETCH_CPU_SHORTFALL, 0


@compiled
def next_allowed(t: Table, now: float) -> float:
    """When the first project may be asked that may not be asked now; a period from now if there is none."""
    soonest = math.inf
    for p in range(len(t.projects)):
        if t.projects[p].attached and t.projects[p].rpc_allowed_secs > now:
            soonest = min(soonest, t.projects[p].rpc_allowed_secs)
    return now + t.run[0].period_secs if soonest == math.inf else soonest


@compiled
def _ahead_secs(t: Table, now: float) -> float:
    """When a shortfall begins, a back-off ends, or a starved project may no longer be overworked."""
    run = t.run[0]
    ahead = run.period_secs
    for k in range(len(t.kinds)):
        saturated_secs = t.kinds[k].saturated_secs
        if saturated_secs > run.buffer_min_secs:
            ahead = min(ahead, saturated_secs - run.buffer_min_secs)
        if saturated_secs > run.buffer_total_secs:
            ahead = min(ahead, saturated_secs - run.buffer_total_secs)
    for p in range(len(t.projects)):
        project = t.projects[p]
        if not project.attached:
            continue
        if project.rpc_allowed_secs > now:
            ahead = min(ahead, project.rpc_allowed_secs - now)
        for k in range(len(t.kinds)):
            if t.pairs[p, k].backoff_until_secs > now:
                ahead = min(ahead, t.pairs[p, k].backoff_until_secs - now)
    return ahead


@compiled
def piggyback_request(t: Table, p: int, now: float) -> tuple[int, int, int]:
    """Returns the request to a project that is being contacted anyway."""
    fetch_at = t.run[0].fetch_at
    asked = fetch(t, now)
    t.run[0].fetch_at = fetch_at
    return asked if asked[0] == p else NOBODY
