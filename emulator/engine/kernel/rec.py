"""The modern policy, and its letter (emulator.engine.policies.rec)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from emulator.engine.kernel.bounds import least_saturated_secs, min_saturated_secs
from emulator.engine.kernel.chance import expm1
from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.jobs import left_secs
from emulator.engine.kernel.queues import MAX_SLICES, goes_beyond_text
from emulator.engine.kernel.simulations import (
    find_delays,
    forecast,
    forecast_beside_wide,
    forecast_of_snapshot,
    take_snapshot,
)
from emulator.engine.random_numbers import LN2
from emulator.engine.scenario import DAY_SECS
from emulator.engine.table import Table
from emulator.engine.timeline.reasons import Reason

MAX_UNFINISHED: Final = 1000  # jobs of one project; with more it is asked for none, under every policy
HALF_LIFE_DAYS: Final = 10.0
HALF_LIFE_REQUESTS: Final = 10  # unless it is set, the half-life is at least this many requests of the rarest project
RESCALE: Final = 1e6
LONGEST_STEP: Final = 30.0  # of the decay's exponent
ZERO_SHARE_SECS: Final = 180.0
ANY_JOB_SECS: Final = 1.0  # requested where one job, however short, will do
CHECK_SECS: Final = 60.0  # the buffer is checked "every 60 seconds"
MARGIN_SECS: Final = 1.0
FETCH_SATURATION: Final = int(Reason.FETCH_SATURATION)
FETCH_BESIDE_WIDE: Final = int(Reason.FETCH_BESIDE_WIDE)
FETCH_ALONG: Final = int(Reason.FETCH_ALONG)
NOBODY: Final = (-1, 0, 0)  # a project, a reason and a kind: those of a request


@compiled
def _grow(t: Table, grown: float) -> None:
    run = t.run[0]
    grown_secs = grown / run.decay
    for p in range(len(t.projects)):
        if t.projects[p].running:
            t.projects[p].done_flop += t.projects[p].busy_flops * grown_secs
    run.growth += grown


@compiled
def accrue(t: Table, now: float) -> None:
    """Books the time until now."""
    run = t.run[0]
    exponent = run.decay * (now - run.accrued_secs)
    run.accrued_secs = now
    if 0.0 < exponent < 0.01 and run.growth < RESCALE:
        _grow(t, run.growth * (exponent * (1.0 + exponent / 2 * (1.0 + exponent / 3 * (1.0 + exponent / 4)))))
        return
    while exponent > 0.0:
        step = min(exponent, LONGEST_STEP)
        exponent -= step
        _grow(t, run.growth * expm1(step))
        if run.growth > RESCALE:
            for p in range(len(t.projects)):
                t.projects[p].done_flop /= run.growth
            run.growth = 1.0


@compiled
def can_ask(t: Table, p: int, now: float) -> bool:
    """Whether a project may be asked for work now (Client.can_ask)."""
    project = t.projects[p]
    return bool(
        project.rpc_allowed_secs <= now
        and project.attached
        and not (project.suspended or project.no_new_tasks or project.held)
        and not (t.run[0].limited and _has_enough(t, p, now))
    )


@compiled
def _has_enough(t: Table, p: int, now: float) -> bool:
    """Whether it already has as many jobs as its limits let it run within the buffer."""
    for k in range(len(t.kinds)):
        if t.pairs[p, k].can_supply and usable_secs(t, p, k, now) > 0.0:
            return False
    return True


@compiled
def usable_secs(t: Table, p: int, k: int, now: float) -> float:
    """How much more work of that kind its limits let it do within the buffer; infinity if they do not matter."""
    most = t.pairs[p, k].most_used
    if most >= t.kinds[k].instances:
        return math.inf
    queued_secs = t.pairs[p, k].waiting_secs
    for i in range(t.run[0].begun):
        job = t.jobs[t.lists[i].begun]
        if job.project == p and job.kind == k:
            queued_secs += left_secs(t, t.lists[i].begun, now) * job.usage
    return float(most * t.run[0].buffer_total_secs - queued_secs / t.kinds[k].up_fraction)


@compiled
def _queued_flop(t: Table, p: int, now: float) -> float:
    run = t.run[0]
    flop = 0.0
    for k in range(len(t.kinds)):
        pair = t.pairs[p, k]
        if pair.waiting:
            for j in range(run.jobs):
                job = t.jobs[j]
                if job.project == p and job.kind == k and not job.started and not job.done:
                    flop += pair.waiting_secs * job.counted_flops / job.usage
                    break
        if pair.begun:
            for i in range(run.begun):
                job = t.jobs[t.lists[i].begun]
                if job.project == p and job.kind == k:
                    flop += left_secs(t, t.lists[i].begun, now) * job.counted_flops
    return flop


@compiled
def _adapt_half_life(t: Table) -> None:
    run = t.run[0]
    buffer_flop = run.buffer_total_secs * run.host_flops
    longest_secs = 0.0
    for p in range(len(t.projects)):
        project = t.projects[p]
        if project.share and project.attached:
            request_flop = max(project.job_flop, buffer_flop / 2)
            between_secs = request_flop * project.inverse / run.host_flops
            longest_secs = max(longest_secs, between_secs, project.job_secs)
    run.decay = LN2 / max(HALF_LIFE_DAYS * DAY_SECS, HALF_LIFE_REQUESTS * longest_secs)


@compiled
def _rank_by_letter(t: Table, p: int, total: float, shares: float, now: float) -> float:
    run, project = t.run[0], t.projects[p]
    part = project.done_flop / total
    rank = part * shares / project.share if project.share else part
    if project.unfinished:
        rank += _queued_flop(t, p, now) / (run.buffer_total_secs * run.host_flops)
    return rank


@compiled
def _rank_ahead(t: Table, p: int, short_flop: float, now: float) -> float:
    """The rank after its queued jobs and half of the request are done."""
    project = t.projects[p]
    ahead_flop = (project.job_flop if project.job_flop > short_flop else short_flop) / 2
    if project.unfinished:
        ahead_flop += _queued_flop(t, p, now)
    return project.done_flop * project.inverse + t.run[0].growth * project.inverse * ahead_flop


@making_arrays
def find_order(t: Table, now: float) -> int:
    """Puts the projects that may be asked into `order`, highest priority first; returns how many."""
    run = t.run[0]
    if not run.by_letter and run.adapts and run.adapted != run.arrivals:
        run.adapted = run.arrivals
        _adapt_half_life(t)
    short_flop = 0.0
    for k in range(len(t.kinds)):
        short_flop += t.kinds[k].shortfall_secs * t.kinds[k].counted_flops
    total = shares = 0.0
    for p in range(len(t.projects)):
        if t.projects[p].attached and (not run.runnable_shares or can_ask(t, p, now)):
            total += t.projects[p].done_flop
            shares += t.projects[p].share
    total = total if total else 1.0
    shares = shares if shares else 1.0
    ranks = np.empty(len(t.projects))
    count = 0
    for p in range(len(t.projects)):
        if not can_ask(t, p, now):
            continue
        if run.by_letter:
            ranks[p] = _rank_by_letter(t, p, total, shares, now)
        else:
            ranks[p] = _rank_ahead(t, p, short_flop, now)
        t.projects[p].rank = ranks[p]
        place = count
        while place > 0:
            other = t.projects[place - 1].order
            tier, other_tier = t.projects[p].tier, t.projects[other].tier
            if tier > other_tier or (tier == other_tier and ranks[other] <= ranks[p]):
                break
            t.projects[place].order = other
            place -= 1
        t.projects[place].order = p
        count += 1
    return count


@compiled
def _able(t: Table, p: int, k: int, saturated_secs: float, now: float) -> bool:
    """Whether a project could be asked for that kind now."""
    project, pair = t.projects[p], t.pairs[p, k]
    if not pair.can_supply or pair.backoff_until_secs > now:
        return False
    if not project.share and not _is_dry_soon(t, saturated_secs):
        return False
    return bool(project.unfinished <= MAX_UNFINISHED)


@compiled
def _is_dry_soon(t: Table, saturated_secs: float) -> bool:
    """Whether an instance will be idle so soon that a project of share 0 may be asked."""
    return bool(saturated_secs < min(t.run[0].buffer_min_secs, ZERO_SHARE_SECS))


@compiled
def _ask(t: Table, p: int, k: int) -> None:
    """Asks for jobs for the idle instances and for the shortfall; a project of share 0 for the idle instances alone, or
    for the one that will be idle soon."""
    run, kind = t.run[0], t.kinds[k]
    if not t.projects[p].share:
        kind.asked_secs = ANY_JOB_SECS
        # Not by seconds alone: what a job for a GPU takes of a CPU would do for these.
        kind.asked_instances = 0.0 if run.one_backup_job else max(1.0, kind.idle)
        return
    kind.asked_secs = kind.shortfall_secs
    kind.asked_instances = kind.idle
    if run.share_of_instances:
        kind.asked_instances = max(kind.idle, _share_of_instances(t, p, k))


@compiled
def _share_of_instances(t: Table, p: int, k: int) -> float:
    """The part of the project's share of the instances that its jobs leave unused."""
    shares = used = 0.0
    for other in range(len(t.projects)):
        if t.projects[other].attached and t.pairs[other, k].can_supply:
            shares += t.projects[other].share
    for i in range(t.run[0].begun):
        job = t.jobs[t.lists[i].begun]
        if job.project == p and job.kind == k:
            used += job.usage
    for j in range(t.run[0].jobs):
        job = t.jobs[j]
        if job.project == p and job.kind == k and not (job.started or job.done):
            used += job.usage
    return float(t.kinds[k].instances * t.projects[p].share / (shares if shares else 1.0) - used)


@compiled
def _start_request(t: Table, p: int, now: float) -> None:
    for k in range(len(t.kinds)):
        t.kinds[k].asked_secs = 0.0
        t.kinds[k].asked_instances = 0.0
    find_delays(t, p, now)


@compiled
def _soonest_check(t: Table, now: float) -> float:
    run = t.run[0]
    soonest = now + (CHECK_SECS if run.checked_version == run.version else MARGIN_SECS)
    run.checked_version = run.version
    return soonest


@compiled
def _bound_decides(t: Table, now: float) -> bool:
    """Whether a bound shows that no queue is low. The time of the next look is then the bound, too."""
    run = t.run[0]
    if run.sim_at == now and run.sim_version == run.version:
        return False
    least = run.buffer_total_secs + max(run.period_secs, run.buffer_total_secs / MAX_SLICES)
    for k in range(len(t.kinds)):
        if t.kinds[k].supplied:
            least = min(least, least_saturated_secs(t, k, now))
            if least < run.buffer_min_secs:
                return False
    take_snapshot(t, now)
    run.pending_soonest = _soonest_check(t, now)
    run.fetch_at = max(now + least - run.buffer_min_secs + MARGIN_SECS, run.pending_soonest)
    return True


@compiled
def resolve(t: Table) -> None:
    """Finds the exact time of the next look, as of the last one."""
    run = t.run[0]
    run.pending = 0
    forecast_of_snapshot(t)
    again = math.inf
    for k in range(len(t.kinds)):
        if t.kinds[k].supplied:
            again = min(again, run.pending_at + t.kinds[k].saturated_secs - run.buffer_min_secs)
    run.fetch_at = max(again + MARGIN_SECS, run.pending_soonest)


@compiled
def _is_full(t: Table, now: float) -> bool:
    """Whether the quick bound shows that no queue is low."""
    run = t.run[0]
    again = math.inf
    for k in range(len(t.kinds)):
        if t.kinds[k].supplied:
            secs = min_saturated_secs(t, k, now)
            if secs < run.buffer_min_secs:
                return False
            again = min(again, now + secs - run.buffer_min_secs)
    run.fetch_at = max(again + MARGIN_SECS, _soonest_check(t, now))
    return True


@compiled
def fetch(t: Table, now: float) -> tuple[int, int, int]:
    """Decides whom to ask, for which reason and kind (`NOBODY`: nobody, and `fetch_at` is when to look again)."""
    run = t.run[0]
    kinds = len(t.kinds)
    run.pending = 0
    wide = _has_wide_jobs(t)
    if not wide and (_is_full(t, now) or _bound_decides(t, now)):
        return NOBODY
    forecast(t, now)
    again = math.inf
    any_low = False
    for k in range(kinds):
        if t.kinds[k].supplied:
            if t.kinds[k].saturated_secs < run.buffer_min_secs:
                any_low = True
            else:
                again = min(again, now + t.kinds[k].saturated_secs - run.buffer_min_secs)
    again = max(again + MARGIN_SECS, _soonest_check(t, now))
    if any_low:
        count = find_order(t, now)
        for place in range(count):
            for k in range(kinds):
                if _is_low(t, k) and _able(t, t.projects[place].order, k, t.kinds[k].saturated_secs, now):
                    _request(t, place, k, now)
                    return t.projects[place].order, FETCH_SATURATION, k
        again = _soonest_able(t, again, now)
    if wide:
        forecast_beside_wide(t, now)
        if _is_low(t, 0):
            p = _first_beside_wide(t, now)
            if p >= 0:
                _start_request(t, p, now)
                _ask(t, p, 0)
                return p, FETCH_BESIDE_WIDE, 0
            again = _soonest_able(t, again, now)
        else:
            again = min(again, now + max(CHECK_SECS, t.kinds[0].saturated_secs - run.buffer_min_secs + MARGIN_SECS))
    run.fetch_at = max(again, now + 1.0)
    return NOBODY


@compiled
def _has_wide_jobs(t: Table) -> bool:
    """Whether a job of several CPUs waits, so that CPUs may be idle beside it."""
    if not goes_beyond_text(t) or t.kinds[0].max_usage <= 1.0:
        return False
    for p in range(len(t.projects)):
        if _widest_waiting(t, p) > 1.0:
            return True
    return False


@compiled
def _widest_waiting(t: Table, p: int) -> float:
    """The most CPUs that one of the project's jobs waits for."""
    widest = 0.0
    for j in range(t.run[0].jobs):
        job = t.jobs[j]
        if job.project == p and not (job.kind or job.done or job.running):
            widest = max(widest, job.usage)
    return widest


@compiled
def _first_beside_wide(t: Table, now: float) -> int:
    """The first project that has no such job itself, as it may send jobs that run beside them."""
    count = find_order(t, now)
    for place in range(count):
        p = t.projects[place].order
        if _able(t, p, 0, t.kinds[0].saturated_secs, now) and _widest_waiting(t, p) <= 1.0:
            return int(p)
    return -1


@compiled
def _is_low(t: Table, k: int) -> bool:
    return bool(t.kinds[k].supplied and t.kinds[k].saturated_secs < t.run[0].buffer_min_secs)


@compiled
def _soonest_able(t: Table, again: float, now: float) -> float:
    """The earliest time at which a project can be asked for a kind that is low."""
    for p in range(len(t.projects)):
        project = t.projects[p]
        if not project.attached or project.suspended or project.no_new_tasks:
            continue
        for k in range(len(t.kinds)):
            pair, saturated_secs = t.pairs[p, k], t.kinds[k].saturated_secs
            if not _is_low(t, k) or not pair.can_supply:
                continue
            soonest = max(project.rpc_allowed_secs, pair.backoff_until_secs)
            if soonest > now:
                again = min(again, soonest)
            elif not project.share and saturated_secs > ZERO_SHARE_SECS:
                again = min(again, now + max(CHECK_SECS, saturated_secs - ZERO_SHARE_SECS))
    return again


@compiled
def _request(t: Table, place: int, chosen: int, now: float) -> None:
    """Requests the kind that it was chosen for, and all others that are short and that no project before it could
    supply.
    """
    p = t.projects[place].order
    _start_request(t, p, now)
    for k in range(len(t.kinds)):
        short = t.kinds[k].shortfall_secs > 0 and t.pairs[p, k].can_supply
        short = short and (t.projects[p].share > 0.0 or _is_dry_soon(t, t.kinds[k].saturated_secs))
        for before in range(place):
            if _able(t, t.projects[before].order, k, t.kinds[k].saturated_secs, now):
                short = False
        if k == chosen or short:
            _ask(t, p, k)


@compiled
def piggyback_request(t: Table, p: int, now: float) -> tuple[int, int, int]:
    """Returns the request to a project that is being contacted anyway."""
    run = t.run[0]
    run.pending = 0
    forecast(t, now)
    count = find_order(t, now)
    about = -1
    for k in range(len(t.kinds)):
        if t.kinds[k].shortfall_secs <= 0:
            continue
        saturated_secs = t.kinds[k].saturated_secs if run.any_without_share else 0.0
        for place in range(count):
            if _able(t, t.projects[place].order, k, saturated_secs, now):
                if t.projects[place].order == p:
                    if about < 0:
                        about = k
                        _start_request(t, p, now)
                    _ask(t, p, k)
                break
    return (p, FETCH_ALONG, about) if about >= 0 else NOBODY
