"""The scheduler RPC as one use case: identify the client, take reports, send jobs.

Most requests read, are given ready jobs (`scheduler.ready_jobs.job_cache`), lock and write: three statements, of which
the last two are the transaction. Requests that come at the same time may be read, and written, together
(`portal.clients.database.batching`), so nothing here may block.

The transaction locks the computers and the jobs first. It leaves out a request whose computer is locked or was written
since it was read, or one of whose jobs cannot be had any more. Such a request is answered once more, with the computer
locked before it is read. A request that reports jobs, or for which no jobs are ready, is answered so from the start.
This way has at most nine statements, whatever the number of jobs: begin, lock, read, report, lock the ready jobs, pick
if others have them, pick elsewhere or diagnose, write, commit.

Locks are taken in the order of the whole project server: the computer; workunits of reported results by id, then these
results; with reports the computer's (host, version) records; jobs, with SKIP LOCKED.

Everything may be repeated. If a reply is lost, the next request does not name the jobs that were in it, and reports
again what was not acknowledged.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.conf import settings

from credit.engine import probation
from credit.engine.facts import HostVersionFacts
from credit.engine.flops import believed_benchmark
from credit.engine.states import ServerState
from portal.clients.effects import ExclusiveKey, Transaction, in_thread
from portal.clients.request_handler import best_effort
from portal.models import User
from portal.people.accounts import ClientAuthError, note_key_use
from portal.wire import credentials
from portal.wire.boinc_errors import ERR_GENERIC
from scheduler.engine.choice import versions
from scheduler.engine.facts import Job, JobQuery, RecordKey
from scheduler.engine.lanes import is_for_one_person
from scheduler.engine.request import SchedulerRequest
from scheduler.programs import catalogue
from scheduler.programs.catalogue import Catalogue
from scheduler.programs.code_signing import KeyStep
from scheduler.ready_jobs import job_cache
from scheduler.ready_jobs.job_cache import TakenJobs
from scheduler.rpc import dispatch, host_record, identify, preferences, queue, reply, reports, store, trickles, writes
from scheduler.rpc.dispatch import Dispatch
from scheduler.rpc.queue import DiagnosisQuery
from scheduler.rpc.reports import Report
from scheduler.rpc.rows import KnownResult, Waiting, WrittenRow
from scheduler.rpc.store import Account, JobsOfDay, KnownHost
from scheduler.rpc.writes import Changes, RecordChanges
from scheduler.wire.replies import SchedulerReply, render_reply

KEY_USE_NOTED_EVERY_SECS: Final = 86_400.0
TOO_LONG: Final = "The request was too long to be read at once; what it reports is being taken in parts"
KEY_FOLLOWS: Final = "This project's code-signing key has changed more than once, and BOINC gets one change at a time"
MAX_ATTEMPTS: Final = 5
_DRAW: Final = random.Random()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt at an answer. ``is_locked``: its transaction locks the computer before it reads."""

    request: SchedulerRequest
    catalogue: Catalogue
    taken: TakenJobs
    now: dt.datetime
    draw: random.Random
    is_locked: bool


class _Served(NamedTuple):
    """What is answered, once what was reported, and what is sent, is stored; and to whom."""

    account: Account
    answered: SchedulerReply


async def answer(request: SchedulerRequest, *, now: dt.datetime, draw: random.Random = _DRAW) -> bytes:
    """Answer one request of a client. Raises ProtocolError or ClientAuthError, whose sentence the client is to show."""
    if request.hostid:
        # With the key, as anybody can name a computer's number.
        await ExclusiveKey(("scheduler", request.hostid, request.authenticator))
    known = await catalogue.catalogue_for_key(request.code_sign_key)
    host_id, is_enrolled = request.hostid, False
    # A request that reports jobs writes before everything is known. One that finds no ready job searches the queue.
    is_locked = bool(request.results)
    if request.wants_work:
        await job_cache.fill(known)
        is_locked = is_locked or not job_cache.has_jobs(known)
    # Each attempt draws the same: another draw would fall on apps that have ready jobs more often than on the others.
    seed = draw.random() if len(known.apps) > 1 else None
    for _ in range(MAX_ATTEMPTS):
        drawn = draw if seed is None else random.Random(seed)
        taken = TakenJobs(known)
        attempt = _Attempt(request, known, taken, now, drawn, is_locked)
        try:
            steps = _serve(attempt, host_id, is_enrolled=is_enrolled)
            served = await (Transaction(steps) if is_locked else steps)
        finally:
            taken.release()
        match served:
            case _Served(account, answered):
                break
            case identify.UnknownHost():
                host_id = await in_thread(identify.enrol, served, request, now)
                is_enrolled = True
            case identify.UnknownKey():
                await in_thread(identify.refuse, served)
            case None:
                is_locked = True
    else:
        raise ClientAuthError(ERR_GENERIC, "This computer's record keeps changing. Try again in a minute.")
    await best_effort(_note_key_use(account, host_id, now))
    await best_effort(_converge(request, account, answered))
    await best_effort(preferences.keep_newer(request, account, now))
    return render_reply(answered)


async def _serve(
    attempt: _Attempt, host_id: int, *, is_enrolled: bool
) -> _Served | identify.UnknownHost | identify.UnknownKey | None:
    """Identify the client, take its reports, choose jobs, send them, and reply.

    None, and nothing is stored, if the computer has to be locked for that, or was written since it was read.
    """
    request, known, now = attempt.request, attempt.catalogue, attempt.now
    identified = await identify.find_account(
        request, host_id, locks=attempt.is_locked, trickle_downs=known.has_trickle_downs, is_enrolled=is_enrolled
    )
    if not isinstance(identified, identify.Identified):
        return identified
    account, host = identified

    key_step = known.code_keys.step(request.code_sign_key)
    if not (key_step.reaches_current or request.is_anonymous):
        # It would refuse all programs: they are signed with the key in force.
        request.sends_no_work = True
    reported = reports.judge(account, host.id, request, now)
    work, stays = _begin(attempt, account, host, reported)
    if (reported or work.lost) and not attempt.is_locked:
        return None
    telling = trickles.telling(request, account, stays, known.apps, now)
    reports_taken = await _take_reports(account, host, work, reported, sorted(telling.deadlines), now)

    queries = _queries(work, attempt.draw)
    chosen = await _choose(attempt, account.user_id, queries, work)
    if chosen is None:
        return None
    sending = _send(work, chosen.jobs, account.jobs_of_day, now)
    reasons = await _reasons(request, key_step, work, queries, chosen.waiting)

    changes = Changes(
        jobs=sending.rows,
        records=_record_changes(work, reports_taken, sending.began),
        trickles=trickles.rows(request, account, host.id),
        host=host_record.changes(request, account, host, reasons, now),
        telling=telling,
    )
    ready = attempt.taken.keep({each.job.id for each in work.selection.sent})
    if attempt.is_locked:
        written: WrittenRow | None = await writes.write_locked(host, account.user_id, changes, now)
    else:
        written = await writes.write(host, account.user_id, changes, ready, now)
    if written is None:
        return None

    is_urgent = dispatch.is_urgent(work.selection)
    answered = reply.reply_to(request, account, host, reasons, now, is_urgent=is_urgent)
    answered.about_project_xml = known.gui_urls_xml if request.is_anonymous else known.about_project_xml
    reply.add_key(answered, key_step, stays, known, request.is_anonymous)
    reply.add_jobs(answered, work, written.sent or {}, now)
    reply.tell(answered, telling)
    reply.acknowledge_messages(answered, request, host.id, has_dropped=written.has_dropped_trickles)
    answered.aborts, answered.aborts_if_not_started = reports.unneeded(account, host.id, request, known.generation, now)
    return _Served(account, answered)


def _begin(
    attempt: _Attempt, account: Account, host: KnownHost, reported: list[Report]
) -> tuple[Dispatch, list[KnownResult]]:
    """What fits the computer, and which lost jobs go out again; the jobs that stay on the computer."""
    request, now = attempt.request, attempt.now
    lost = reports.lost(account, host.id, request)
    gone = {report.result.id for report in reported} | {each.id for each in lost}
    stays = [
        each
        for each in account.results.values()
        if each.host_id == host.id and each.server_state == ServerState.IN_PROGRESS and each.id not in gone
    ]
    work = dispatch.begin(request, account, attempt.catalogue, stays, now, attempt.draw)
    if host.id == request.hostid:
        dispatch.send_again(work, request, account.user_id, lost, now)
    else:
        work.lost = lost
    return work, stays


class _ReportsTaken(NamedTuple):
    """The rows of the computer's (host, version) records, and the keys of those that the reports changed."""

    ids: dict[RecordKey, int]
    judged: set[RecordKey]


async def _take_reports(
    account: Account, host: KnownHost, work: Dispatch, reported: list[Report], extended: list[int], now: dt.datetime
) -> _ReportsTaken:
    """Store the results that were reported or lost. If some of them count, go on with the locked records, in which
    they are counted. ``extended``: results that will get another deadline, which are locked before the records.
    """
    rows = [report.row for report in reported] + [reports.lost_row(each) for each in work.lost]
    if not rows:
        return _ReportsTaken(account.records.ids, set())
    claimed = [report.result.workunit_id for report in reported if report.result.host_id is None]
    counted, records = await store.report(host.id, rows, claimed, extended, account.jobs_of_day, now)
    if not counted:
        return _ReportsTaken(account.records.ids, set())
    dispatch.renew_records(work, records.records)
    ended = reports.endings(reported, work.lost, counted)
    reports.count_undone(ended, account.jobs_of_day, work.selection.records, work.selection.today)
    known, own = work.catalogue, work.selection.records
    judged = reports.count(ended, known.apps, known.versions_by_app, own, work.computer, now)
    # A new version's record is stored when a job of it is sent, and not before.
    return _ReportsTaken(records.ids, judged & records.ids.keys())


def _queries(work: Dispatch, draw: random.Random) -> list[JobQuery]:
    """What to look for besides the jobs that are sent again."""
    for each, choice in work.again:
        assert each.job is not None  # send_again sees to that
        work.selection.count(each.job, choice)
    return dispatch.job_queries(work, draw)


class _Chosen(NamedTuple):
    """Jobs that may be sent; ``waiting``: the counts of jobs in the queues, if these were searched."""

    jobs: list[Job]
    waiting: Waiting | None


async def _choose(attempt: _Attempt, user_id: int, queries: list[JobQuery], work: Dispatch) -> _Chosen | None:
    """Ready jobs or, if there are too few of an app, from the queues; None: for these the computer has to be locked."""
    taken = attempt.taken
    if not any(query.lanes for query in queries) and taken.take(queries, user_id):
        jobs = taken.jobs
        if not (attempt.is_locked and jobs) or await writes.reserve([job.id for job in jobs]):
            return _Chosen(jobs, None)
        # Others have some of them.
        taken.release()
    return await _picked(attempt, user_id, queries, work) if attempt.is_locked else None


async def _picked(attempt: _Attempt, user_id: int, queries: list[JobQuery], work: Dispatch) -> _Chosen:
    """Jobs from the heads of the queues and, if those have too few, from elsewhere, with counts of waiting jobs.

    Last of all come copies that are kept for others: if nothing else suits, nobody has to go without.
    """
    known = work.catalogue
    jobs, heads = await queue.pick(user_id, queries)
    found = Counter([job.app_id for job in jobs])
    short = [
        dispatch.from_random_place(query, query.most - found[query.app_id], known.apps[query.app_id], attempt.draw)
        for query in queries
        if found[query.app_id] < query.most
    ]
    waiting = None
    if short:
        others = dispatch.queries_of_other_apps(work, queries, sum(query.most for query in short))
        kept = [query.with_ties() for query in queries + others if query.avoids_ties]
        more, waiting = await queue.pick_elsewhere(user_id, short + others + kept, queries + others, jobs, attempt.now)
        jobs += {job.id: job for job in more}.values()
        found.update([job.app_id for job in more])
    for query in queries:
        known.note_head(query.app_id, heads.get(query.app_id) if found[query.app_id] >= query.most else None)
    job_cache.forget(jobs, work.ties)
    return _Chosen(jobs, waiting)


class _Sending(NamedTuple):
    """The rows of the jobs that are sent, and the records that begin a spell of probation or get a quota."""

    rows: list[dict[str, Any]]
    began: set[RecordKey]


def _send(work: Dispatch, jobs: list[Job], jobs_of_day: JobsOfDay, now: dt.datetime) -> _Sending:
    """Choose the jobs to send."""
    selection = work.selection
    for job in jobs:
        selection.offer(job)
    if selection.sent:
        jobs_of_day.begin(selection.today)
    rows, began = [], set()
    for each in selection.sent:
        key = each.choice.key
        record = selection.records.get(key) or selection.records.setdefault(key, HostVersionFacts())
        since = record.host_scale_time
        if not record.max_jobs_per_day:
            # So that also one that never reports can be punished.
            record.max_jobs_per_day = versions.most_a_day(selection.apps[key.app_id], work.computer, key.processor_type)
            began.add(key)
        probation.count_sent(record, now.timestamp(), each.job.delay_bound_secs, selection.today)
        jobs_of_day.counts[key] = record.n_jobs_today
        if record.host_scale_time != since:
            began.add(key)
        rows.append(
            writes.job_row(
                each.job,
                each.choice,
                believed_benchmark(work.computer.p_fpops, dispatch.ceilings()),
                now + dt.timedelta(seconds=each.job.delay_bound_secs + settings.REPORT_GRACE_SECS),
                work.ties,
                one_per_user=selection.apps[each.job.app_id].one_result_per_user
                and not is_for_one_person(each.job.lane, each.job.min_quorum),
                must_replicate=each.must_replicate,
                binding=each.binding,
            )
        )
    return _Sending(rows, began)


def _record_changes(work: Dispatch, taken: _ReportsTaken, began: set[RecordKey]) -> RecordChanges:
    """The values to store for the records that reports or jobs changed."""
    selection, changes = work.selection, RecordChanges()
    new = {each.choice.key for each in selection.sent if each.choice.key not in taken.ids}
    # In the order in which all others lock them.
    for key in sorted(taken.judged | began | new, key=lambda key: taken.ids.get(key, 0)):
        row = writes.record_row(key, selection.records[key], taken.ids.get(key), work.inherited.get(key, 0))
        known_rows = changes.judged if key in taken.judged else changes.begun
        (known_rows if key in taken.ids else changes.added).append(row)
    return changes


async def _reasons(
    request: SchedulerRequest, key_step: KeyStep, work: Dispatch, queries: list[JobQuery], waiting: Waiting | None
) -> list[str]:
    """Why nothing is sent, if so. To a client whose key is no key of ours a notice says it."""
    if work.selection.sent or work.again:
        return []
    if queries and not waiting:
        waiting = await DiagnosisQuery(queries)
    if request.is_cut:
        return [TOO_LONG]
    if request.is_anonymous or key_step.reaches_current:
        return dispatch.messages(work.selection, waiting)
    return [KEY_FOLLOWS] if key_step.xml else []


async def _note_key_use(account: Account, host_id: int, now: dt.datetime) -> None:
    """Once a day is enough for the owner's list of keys, and spares every other request a write."""
    used = account.key_used_at
    if used is None or now.timestamp() - used > KEY_USE_NOTED_EVERY_SECS:
        await in_thread(note_key_use, account.key_id, host_id, now)


async def _converge(request: SchedulerRequest, account: Account, answered: SchedulerReply) -> None:
    """Take over the person's cross-project id that the client found at an older account of theirs, and reply with it.

    Only from a strong key: weak ones are handed to computers that need not be trusted with the account. Which account
    is the oldest, the client finds: it sees those at all of its projects.
    """
    said = request.cross_project_id.lower()
    if said == account.cross_project_id or request.has_weak_key:
        return
    if len(said) == 32 and set(said) <= set("0123456789abcdef"):
        await in_thread(User.objects.filter(pk=account.user_id).update, cross_project_id=said)
        answered.person.cross_project_id = said
        answered.person.external_cpid = credentials.external_cpid(said, account.email)
