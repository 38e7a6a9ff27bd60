"""RPCs, and the servers' replies: emulator.engine.events.contact and .server in arrays."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from emulator.engine.events import contact
from emulator.engine.events.contact import (
    BACKOFF_FIRST_SECS,
    BACKOFF_MAX_SECS,
    MASTER_FETCH_FAILURES,
    MASTER_FETCHES,
    MAX_READY,
    POLL_SECS,
)
from emulator.engine.kernel import decide, rec
from emulator.engine.kernel.chance import server_is_up, standard_normal, uniform
from emulator.engine.kernel.compiled import compiled, making_arrays
from emulator.engine.kernel.jobs import END, arrive, judge_late
from emulator.engine.kernel.queues import add_to_least
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
    """After a failed job, leaves its project alone for a while."""
    job = t.jobs[j]
    project = t.projects[job.project]
    wait = 0.0
    if project.error_delay_secs:
        wait = overall_wait(t, job.project, project.error_delay_secs)
        project.rpc_allowed_secs = max(project.rpc_allowed_secs, now + wait)
    log(t, now, END, JOB_FAILED, job.project, job.id, job.kind, wait)


@compiled
def finished(t: Table, j: int, now: float) -> None:
    """Registers a finished job, which waits to be reported."""
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
        asked = decide.piggyback_request(t, due, now)
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
    """Makes one RPC: reports, and requests work if there is a request. The reply comes at once, or when `reply` is
    called.
    """
    run, project = t.run[0], t.projects[p]
    run.free_secs = now + POLL_SECS
    if asks and run.limited:
        asks = _stays_within_limits(t, p, about, now)
        if not asks and not project.ready:
            return
    if asks:
        log(t, now, ASK, reason, p, -1, about, t.kinds[about].asked_secs)
    if project.forced_down or _is_downtime(t, p, now) or not server_is_up(t, p, now):
        _not_answered(t, p, asks, now)
        return
    if project.reply_delay_secs:
        run.awaited = p
        run.was_asked = 1 if asks else 0
        # The client makes one RPC at a time.
        run.free_secs = now + max(POLL_SECS, project.reply_delay_secs)
        return
    _answered(t, p, asks, now)


@compiled
def reply(t: Table, now: float) -> bool:
    """Takes the pending reply; returns whether there was one. `free_secs` is when it comes."""
    run = t.run[0]
    if run.awaited < 0:
        return False
    p = run.awaited
    run.awaited = -1
    _answered(t, p, run.was_asked != 0, now)
    plan(t)
    return True


@compiled
def _stays_within_limits(t: Table, p: int, about: int, now: float) -> bool:
    """Reduces a request to the jobs that a project with a limit of concurrent jobs can do within the buffer: more would
    not shorten the shortfall. Returns False, and it is not tried again for a while, if nothing is left of the request's
    subject: its kind or, under a policy without back-offs per kind, any.
    """
    run, again = t.run[0], now + BACKOFF_FIRST_SECS
    any_left = False
    was_about_its_kind = _is_asked(t, about)
    for k in range(len(t.kinds)):
        kind, pair = t.kinds[k], t.pairs[p, k]
        if not _is_asked(t, k):
            continue
        usable_secs = max(0.0, rec.usable_secs(t, p, k, now))
        kind.asked_secs = min(kind.asked_secs, usable_secs)
        kind.asked_instances = min(kind.asked_instances, pair.most_used if usable_secs else 0.0)
        any_left = any_left or _is_asked(t, k)
        kind.cut = 0 if _is_asked(t, k) else 1
    if _is_asked(t, about) if run.uses_backoffs and was_about_its_kind else any_left:
        for k in range(len(t.kinds)):
            t.kinds[k].cut = 0
        return True
    if not run.uses_backoffs:
        t.projects[p].rpc_allowed_secs = max(t.projects[p].rpc_allowed_secs, again)
    for k in range(len(t.kinds)):
        if t.kinds[k].cut:
            t.kinds[k].cut = 0
            t.pairs[p, k].backoff_until_secs = max(t.pairs[p, k].backoff_until_secs, again)
    return False


@compiled
def _is_asked(t: Table, k: int) -> bool:
    return bool(t.kinds[k].asked_secs > 0 or t.kinds[k].asked_instances > 0)


@compiled
def _is_downtime(t: Table, p: int, now: float) -> bool:
    """Whether the server is down on schedule (Downtime.covers)."""
    for i in range(t.run[0].first_downtime, len(t.times)):
        since = now - t.times[i, 1]
        if t.times[i, 0] == p and since >= 0.0:
            if t.times[i, 3]:
                since %= t.times[i, 3]
            if since < t.times[i, 2]:
                return True
    return False


@compiled
def _asked_secs(t: Table, asks: bool) -> float:
    """The total of the request."""
    asked_secs = 0.0
    if asks:
        for k in range(len(t.kinds)):
            asked_secs += t.kinds[k].asked_secs
    return asked_secs


@compiled
def _not_answered(t: Table, p: int, asks: bool, now: float) -> None:
    """Handles a server that is down."""
    project = t.projects[p]
    wait = overall_wait(t, p, FAILURE_FIRST_SECS)
    if t.run[0].one_day_retry:
        if project.failures >= MASTER_FETCH_FAILURES:
            project.master_fetches += 1
            project.failures = 0
        if project.master_fetches >= MASTER_FETCHES:
            wait = DAY_SECS
    project.rpc_allowed_secs = now + wait
    log(t, now, SERVER, SERVER_DOWN, p, -1, 0, wait)
    record_rpc(t, now, p, _asked_secs(t, asks), 0, 0, 0)


@compiled
def _answered(t: Table, p: int, asks: bool, now: float) -> None:
    """Handles an answer: the server took the reports, and sent what it has for the request."""
    run, project = t.run[0], t.projects[p]
    project.failures = 0
    project.rpcs += 1
    run.answered += 1
    project.rpc_allowed_secs = now + project.request_delay_secs
    reported = _take_reports(t, p, now)
    sent = _send(t, p, now) if asks else 0
    record_rpc(t, now, p, _asked_secs(t, asks), sent, reported, 1)


@compiled
def _take_reports(t: Table, p: int, now: float) -> int:
    """Hands the finished jobs to the project's server; returns how many."""
    run, project = t.run[0], t.projects[p]
    count = 0
    for i in range(run.ready):
        j = t.lists[i].ready
        job = t.jobs[j]
        if job.project != p:
            t.lists[count].ready = j
            count += 1
            continue
        job.gone = 1
        if job.end_secs <= 0.0 or job.left_at_error:
            continue  # it was finished before the start, or failed: neither met nor late
        if job.end_secs <= job.deadline_secs or run.wasted_when_reported:
            if now > job.deadline_secs:
                judge_late(t, j, now, JOB_REPORTED_LATE)
            else:
                project.met += 1
    reported = run.ready - count
    run.ready = count
    run.done += reported
    project.ready = 0
    project.report_at_secs = math.inf
    return int(reported)


@making_arrays
def _needed(secs: Floats, instances: Floats) -> Any:
    return (secs > 0) | (instances > 0)


@compiled
def _find_able(t: Table, p: int, needed: Any, best: Ints) -> int:
    """Finds for each application of the project with a needed version the fastest such version, else -1; returns how
    many there are.
    """
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
    """Picks one of these versions at random."""
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
    """Creates a job of that version in the next unused row."""
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
    job.barred = offer.barred
    job.usage, job.cpus, job.counted_flops, job.pace = offer.usage, offer.cpus, offer.counted_flops, offer.pace
    job.size_secs = size / offer.flops
    job.estimate_secs = app.estimate_factor * estimate / offer.flops
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
    if not run.uses_backoffs:
        _delay(t, p, int(count), now)
        return int(count)
    for k in range(len(t.kinds)):
        pair = t.pairs[p, k]
        if got[k]:
            pair.backoff_interval_secs = 0.0
            pair.backoff_until_secs = 0.0
        elif _is_asked(t, k) and not pair.backoff_until_secs > now:
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
    checks = t.projects[p].workload_check != 0
    load = _make_workload(t, now, run.jobs + MAX_JOBS_PER_RPC if checks else 0)
    count = _find_able(t, p, needed, best)
    sent = 0
    while sent < MAX_JOBS_PER_RPC and count:
        o = _any_by_weight(t, p, best, count)
        j = _draw(t, o, now)
        job, k = t.jobs[j], t.offers[o].kind
        if checks:
            fits = _add_to_workload(load, job.deadline_secs, job.estimate_secs, now)
        else:
            fits = delays[k] + job.estimate_secs <= t.apps[job.app].latency_secs
        if not fits:
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


class Workload(NamedTuple):
    """The client's jobs on its CPUs in order of arrival, GPU jobs as if they were CPU jobs (emulator document, section
    5).
    """

    jobs: Ints  # one number: how many
    deadline_secs: Floats
    left: Floats
    late: Floats  # by how much
    trial: Floats
    free: Floats  # by CPU, when it is


@making_arrays
def _make_workload(t: Table, now: float, size: int) -> Workload:
    load = Workload(
        np.zeros(1, np.int64),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.zeros(max(1, int(t.kinds[0].instances))),
    )
    if size:
        for j in range(t.run[0].jobs):
            job = t.jobs[j]
            if not job.done:
                load.deadline_secs[load.jobs[0]] = job.deadline_secs
                load.left[load.jobs[0]] = job.left * job.bias
                load.jobs[0] += 1
        _find_lateness(load, now, load.late)
    return load


@making_arrays
def _find_lateness(load: Workload, now: float, late: Floats) -> None:
    """Computes how late each job is if they run by their deadlines."""
    load.free[:] = 0.0
    for i in np.argsort(load.deadline_secs[: load.jobs[0]], kind="mergesort"):
        late[i] = max(0.0, now + load.free[0] + load.left[i] - load.deadline_secs[i])
        add_to_least(load.free, load.left[i])


@compiled
def _add_to_workload(load: Workload, deadline_secs: float, secs: float, now: float) -> bool:
    """Adds a job if it would be done in time, without making others late, or later than they are."""
    n = load.jobs[0]
    load.deadline_secs[n] = deadline_secs
    load.left[n] = secs
    load.late[n] = 0.0
    load.jobs[0] += 1
    _find_lateness(load, now, load.trial)
    for i in range(n + 1):
        if load.trial[i] > load.late[i] + 1e-6:
            load.jobs[0] -= 1
            return False
    for i in range(n + 1):
        load.late[i] = load.trial[i]
    return True


@compiled
def _log_refused(t: Table, p: int, now: float) -> None:
    for k in range(len(t.kinds)):
        for o in range(len(t.offers)):
            if t.offers[o].refused and t.offers[o].kind == k:
                log(t, now, SERVER, SERVER_DEADLINE, p, -1, k, 0.0)
                break


@compiled
def _delay(t: Table, p: int, count: int, now: float) -> None:
    """After an unsuccessful request under a policy without back-offs per kind, sets an RPC delay that doubles each
    time.
    """
    project, pair = t.projects[p], t.pairs[p, 0]
    if count:
        pair.backoff_interval_secs = 0.0
        return
    if pair.backoff_interval_secs:
        pair.backoff_interval_secs = min(pair.backoff_interval_secs * 2, BACKOFF_MAX_SECS)
    else:
        pair.backoff_interval_secs = BACKOFF_FIRST_SECS
    project.rpc_allowed_secs = now + (0.5 + uniform(t.streams[3 * len(t.projects)])) * pair.backoff_interval_secs
    log(t, now, SERVER, SERVER_DRY, p, -1, 0, project.rpc_allowed_secs - now)


@compiled
def _back_off(t: Table, p: int, k: int, now: float) -> None:
    """Sets the back-off after an unsuccessful request for that kind."""
    pair = t.pairs[p, k]
    if pair.backoff_interval_secs:
        pair.backoff_interval_secs = min(pair.backoff_interval_secs * 2, BACKOFF_MAX_SECS)
    else:
        pair.backoff_interval_secs = BACKOFF_FIRST_SECS
    wait = (0.5 + uniform(t.streams[3 * len(t.projects)])) * pair.backoff_interval_secs
    pair.backoff_until_secs = now + wait
    log(t, now, SERVER, SERVER_DRY, p, -1, k, wait)
