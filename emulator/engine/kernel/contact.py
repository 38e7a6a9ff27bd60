"""RPCs, and what servers send: emulator.engine.contact and .server in arrays."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from emulator.engine import contact
from emulator.engine.contact import BACKOFF_FIRST_SECS, BACKOFF_MAX_SECS, MAX_READY, POLL_SECS
from emulator.engine.kernel import ltd, rec
from emulator.engine.kernel.chance import server_is_up, standard_normal, uniform
from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.jobs import END, arrive, judge_late
from emulator.engine.kernel.queues import LTD
from emulator.engine.kernel.records import log, record_rpc
from emulator.engine.scenario import DAY_SECS, MIN_JOB_FLOP
from emulator.engine.server import MAX_JOBS_PER_RPC
from emulator.engine.table import Floats, Ints, Table
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind

ASK: Final = int(DecisionKind.ASK)
SERVER: Final = int(DecisionKind.SERVER)
SERVER_DOWN: Final = int(Reason.SERVER_DOWN)
SERVER_DRY: Final = int(Reason.SERVER_DRY)
SERVER_DEADLINE: Final = int(Reason.SERVER_DEADLINE)
REPORT_DEADLINE: Final = int(Reason.REPORT_DEADLINE)
REPORT_HOUR: Final = int(Reason.REPORT_HOUR)
REPORT_MANY: Final = int(Reason.REPORT_MANY)
REPORT_AT_ONCE: Final = int(Reason.REPORT_AT_ONCE)
CONTACT_ASKED: Final = int(Reason.CONTACT_ASKED)
JOB_REPORTED_LATE: Final = int(Reason.JOB_REPORTED_LATE)
JOB_FAILED: Final = int(Reason.JOB_FAILED)
FAILURE_FIRST_SECS: Final = contact.FAILURE_FIRST_SECS
FAILURE_MAX_SECS: Final = contact.FAILURE_MAX_SECS


@compiled
def overall_wait(t: Table, p: int, first_secs: float) -> float:
    """Counts one more failure; returns how long to leave the project alone."""
    project = t.projects[p]
    project.failures += 1
    wait = min(first_secs * 2.0 ** min(project.failures, 20), max(FAILURE_MAX_SECS, first_secs))
    return wait * (0.5 + 0.5 * uniform(t.streams[3 * len(t.projects)]))


@compiled
def failed(t: Table, j: int, now: float) -> None:
    """A job has failed: its project is left alone for a while."""
    job = t.jobs[j]
    project = t.projects[job.project]
    wait = 0.0
    if project.error_delay_secs:
        wait = overall_wait(t, job.project, project.error_delay_secs)
        project.rpc_allowed_secs = max(project.rpc_allowed_secs, now + wait)
    log(t, now, END, JOB_FAILED, job.project, job.id, job.kind, wait)


@compiled
def finished(t: Table, j: int, now: float) -> None:
    """A job is finished and waits to be reported."""
    run, job = t.run[0], t.jobs[j]
    project = t.projects[job.project]
    t.lists[run.ready].ready = j
    run.ready += 1
    if not project.ready:
        project.first_ready_secs = job.end_secs
    project.ready += 1
    due = now + run.report_delay_secs
    before_deadline = job.deadline_secs - max(run.buffer_min_secs, DAY_SECS)
    if before_deadline < due:
        due = max(now, before_deadline)
    if run.report_at_once or project.ready >= MAX_READY:
        due = now
    if due < project.report_at_secs:
        project.report_at_secs = due
        run.report_at_secs = min(run.report_at_secs, max(due, project.rpc_allowed_secs))


@compiled
def plan(t: Table) -> None:
    """Finds when the next report is due."""
    soonest = math.inf
    for p in range(len(t.projects)):
        project = t.projects[p]
        if project.attached:
            soonest = min(soonest, max(project.report_at_secs, project.rpc_allowed_secs))
    t.run[0].report_at_secs = soonest


@compiled
def report(t: Table, now: float) -> bool:
    """Makes one report that is due, if there is one; returns whether it contacted a server."""
    run = t.run[0]
    due = -1
    for p in range(len(t.projects)):
        project = t.projects[p]
        if project.attached and project.report_at_secs <= now and project.rpc_allowed_secs <= now:
            due = p
            break
    if due < 0:
        plan(t)
        return False
    asked = rec.NOBODY
    if rec.can_ask(t, due, now):
        asked = ltd.piggyback_request(t, due, now) if run.policy == LTD else rec.piggyback_request(t, due, now)
    project = t.projects[due]
    reason = REPORT_HOUR
    if not project.ready:
        reason = CONTACT_ASKED
    elif run.report_at_once:
        reason = REPORT_AT_ONCE
    elif project.ready >= MAX_READY:
        reason = REPORT_MANY
    elif now < project.first_ready_secs + run.report_delay_secs:
        reason = REPORT_DEADLINE
    log(t, now, ASK, reason, due, -1, 0, 0.0)
    rpc(t, due, asked[0] >= 0, asked[1], asked[2], now)
    plan(t)
    return True


@compiled
def rpc(t: Table, p: int, asks: bool, reason: int, about: int, now: float) -> None:
    """One RPC: reports, and asks for the request if there is one."""
    run, project = t.run[0], t.projects[p]
    run.free_secs = now + POLL_SECS
    asked_secs = 0.0
    if asks:
        log(t, now, ASK, reason, p, -1, about, t.kinds[about].asked_secs)
        for k in range(len(t.kinds)):
            asked_secs += t.kinds[k].asked_secs
    if project.forced_down or not server_is_up(t, p, now):
        wait = overall_wait(t, p, FAILURE_FIRST_SECS)
        project.rpc_allowed_secs = now + wait
        log(t, now, SERVER, SERVER_DOWN, p, -1, 0, wait)
        record_rpc(t, now, p, asked_secs, 0, 0, 0)
        return
    project.failures = 0
    project.rpcs += 1
    run.answered += 1
    project.rpc_allowed_secs = now + project.request_delay_secs
    reported = _take_reports(t, p, now)
    sent = _send(t, p, now) if asks else 0
    record_rpc(t, now, p, asked_secs, sent, reported, 1)


@compiled
def _take_reports(t: Table, p: int, now: float) -> int:
    """The server has the project's finished jobs now; returns how many."""
    run, project = t.run[0], t.projects[p]
    kept = 0
    for i in range(run.ready):
        j = t.lists[i].ready
        job = t.jobs[j]
        if job.project != p:
            t.lists[kept].ready = j
            kept += 1
            continue
        job.gone = 1
        if job.end_secs > 0.0 and not job.left_at_error and job.end_secs <= job.deadline_secs:
            if now > job.deadline_secs:
                judge_late(t, j, now, JOB_REPORTED_LATE)
            else:
                project.met += 1
    reported = run.ready - kept
    run.ready = kept
    run.done += reported
    project.ready = 0
    project.report_at_secs = math.inf
    return int(reported)


@making_arrays
def _needed(secs: Floats, instances: Floats) -> Any:
    return (secs > 0) | (instances > 0)


@compiled
def _find_able(t: Table, p: int, needed: Any, best: Ints) -> int:
    """Of each application of the project with a version that is needed, the fastest such version, else -1; returns
    how many there are."""
    count = 0
    for a in range(len(best)):
        best[a] = -1
    for o in range(len(t.offers)):
        offer = t.offers[o]
        a = offer.app
        if t.apps[a].project != p or t.apps[a].weight <= 0 or not needed[offer.kind] or offer.refused:
            continue
        if best[a] < 0:
            count += 1
        if best[a] < 0 or offer.flops > t.offers[best[a]].flops:
            best[a] = o
    return count


@compiled
def _any_by_weight(t: Table, p: int, best: Ints, count: int) -> int:
    """One of these versions, at random."""
    total = 0.0
    chosen = -1
    for a in range(len(best)):
        if best[a] >= 0:
            total += t.apps[a].weight
            chosen = best[a]
    if count == 1:
        return chosen
    point = uniform(t.streams[p]) * total
    for a in range(len(best)):
        if best[a] >= 0:
            chosen = best[a]
            point -= t.apps[a].weight
            if point < 0:
                break
    return chosen


@compiled
def _draw(t: Table, o: int, now: float) -> int:
    """Makes a job of that version in the next row, which is not used yet."""
    run, offer = t.run[0], t.offers[o]
    app = t.apps[offer.app]
    p = app.project
    size, estimate = app.size_flop, app.estimate_flop
    if app.size_deviation:
        size = max(MIN_JOB_FLOP, size + app.size_deviation * standard_normal(t.streams[p]))
    if app.estimate_deviation:
        estimate = max(MIN_JOB_FLOP, estimate + app.estimate_deviation * standard_normal(t.streams[p]))
    j = run.jobs
    job = t.jobs[j]
    job.id, job.project, job.kind, job.app = run.next_id, p, offer.kind, offer.app
    job.started = job.running = job.done = job.gone = job.by_deadline = job.taken = job.waits_for_ram = 0
    job.lane = job.part_lane = -1
    job.usage, job.cpus, job.counted_flops, job.pace = offer.usage, offer.cpus, offer.counted_flops, offer.pace
    job.size_secs = size / offer.flops
    job.estimate_secs = 1.0 * estimate / offer.flops
    job.bias = job.estimate_secs / job.size_secs
    job.left = job.size_secs
    job.before_secs = job.rate = job.settled_secs = job.slice_end_secs = job.changed_flop = job.left_at_error = 0.0
    job.arrived_secs = now
    job.deadline_secs = now + app.latency_secs
    job.end_secs = math.inf
    if app.error_rate and uniform(t.streams[2 * len(t.projects) + p]) < app.error_rate:
        job.left_at_error = job.size_secs * (1.0 - uniform(t.streams[2 * len(t.projects) + p]))
    return int(j)


@making_arrays
def _send(t: Table, p: int, now: float) -> int:
    """Sends jobs for the request, and sets the back-offs of kinds that got none; returns how many."""
    run = t.run[0]
    first = run.jobs
    for o in range(len(t.offers)):
        t.offers[o].refused = 0
    if t.projects[p].has_work:
        _make_jobs(t, p, now)
    got = np.zeros(len(t.kinds), np.int64)
    for j in range(first, run.jobs):
        arrive(t, j)
        got[t.jobs[j].kind] += 1
    count = run.jobs - first
    t.projects[p].sent += count
    run.sent += count
    _log_refused(t, p, now)
    for k in range(len(t.kinds)):
        pair = t.pairs[p, k]
        if got[k]:
            pair.backoff_interval_secs = 0.0
            pair.backoff_until_secs = 0.0
        elif (t.kinds[k].asked_secs > 0 or t.kinds[k].asked_instances > 0) and not pair.backoff_until_secs > now:
            _back_off(t, p, k, now)
    return int(count)


@making_arrays
def _make_jobs(t: Table, p: int, now: float) -> None:
    run = t.run[0]
    secs, instances, delays = np.empty(len(t.kinds)), np.empty(len(t.kinds)), np.empty(len(t.kinds))
    for k in range(len(t.kinds)):
        kind = t.kinds[k]
        secs[k], instances[k], delays[k] = kind.asked_secs, kind.asked_instances, kind.delay_secs
    needed = _needed(secs, instances)
    best = np.full(len(t.apps), -1)
    count = _find_able(t, p, needed, best)
    sent = 0
    while sent < MAX_JOBS_PER_RPC and count:
        o = _any_by_weight(t, p, best, count)
        j = _draw(t, o, now)
        job, k = t.jobs[j], t.offers[o].kind
        if not delays[k] + job.estimate_secs <= t.apps[job.app].latency_secs:
            t.offers[o].refused = 1
            count = _find_able(t, p, needed, best)
            continue
        run.jobs += 1
        run.next_id += 1
        sent += 1
        expected_secs = job.estimate_secs / t.kinds[k].up_fraction
        secs[k] -= expected_secs * job.usage
        instances[k] -= job.usage
        is_enough = secs[k] <= 0 and needed[k] and instances[k] <= 0
        if k:
            secs[0] -= expected_secs * job.cpus
            instances[0] -= job.cpus
            is_enough = is_enough or (secs[0] <= 0 and needed[0] and instances[0] <= 0)
        delays[k] += expected_secs * job.usage / t.kinds[k].instances
        if is_enough:
            needed = _needed(secs, instances)
            count = _find_able(t, p, needed, best)


@compiled
def _log_refused(t: Table, p: int, now: float) -> None:
    for k in range(len(t.kinds)):
        for o in range(len(t.offers)):
            if t.offers[o].refused and t.offers[o].kind == k:
                log(t, now, SERVER, SERVER_DEADLINE, p, -1, k, 0.0)
                break


@compiled
def _back_off(t: Table, p: int, k: int, now: float) -> None:
    """Asked in vain for that kind."""
    pair = t.pairs[p, k]
    if pair.backoff_interval_secs:
        pair.backoff_interval_secs = min(pair.backoff_interval_secs * 2, BACKOFF_MAX_SECS)
    else:
        pair.backoff_interval_secs = BACKOFF_FIRST_SECS
    wait = (0.5 + uniform(t.streams[3 * len(t.projects)])) * pair.backoff_interval_secs
    pair.backoff_until_secs = now + wait
    log(t, now, SERVER, SERVER_DRY, p, -1, k, wait)
