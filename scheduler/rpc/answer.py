"""The scheduler RPC as one use case: identify the client, take reports, send jobs.

Most requests read, are given ready jobs (`scheduler.ready_jobs.job_cache`), and write: three statements in two round
trips, of which the second is the transaction. Requests that come at the same time may be read, and written, together
(`portal.clients.batching`), so nothing here may block.

The transaction locks the computers and the jobs first. It leaves out a request whose computer is locked or was written
since it was read, or one of whose jobs cannot be had any more. Such a request is answered once more, with the computer
locked before it is read. A request that reports jobs, or for which no jobs are ready, is answered so from the start.
This way has at most eight statements, whatever the number of jobs: begin, lock, read, report, pick, pick elsewhere or
diagnose, write, commit. If a ready job is gone then, too, all is done a third time, without ready jobs.

Locks are taken in the order of the whole project server: the computer; workunits of reported results by id, then these
results; with reports the computer's (host, version) records; jobs, with SKIP LOCKED.

Everything may be repeated. If a reply is lost, the next request does not name the jobs that were in it, and reports
again what was not acknowledged.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from typing import Final

from credit.engine import probation
from credit.engine.facts import HostVersionFacts
from credit.engine.flops import believed_benchmark
from credit.engine.states import ServerState
from portal.clients.request_handler import best_effort
from portal.clients.wants import Transaction, Turn, in_thread
from portal.models import ClientKey, User
from portal.people.accounts import ClientAuthError
from portal.wire import credentials
from portal.wire.boinc_errors import ERR_GENERIC
from scheduler.engine import versions
from scheduler.engine.facts import Job, JobQuery, RecordKey
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
from scheduler.rpc.rows import KnownResult, Waiting
from scheduler.rpc.store import Account, JobsOfDay, KnownHost, StoredRecords
from scheduler.rpc.writes import Changes
from scheduler.wire.replies import Notice, SchedulerReply, render_reply

KEY_USE_NOTED_EVERY_SECS: Final = 86_400.0
TOO_LONG: Final = "The request was too long to be read at once; what it reports is being taken in parts"
KEY_FOLLOWS: Final = "This project's code-signing key has changed more than once, and BOINC gets one change at a time"
_DRAW: Final = random.Random()


async def answer(request: SchedulerRequest, *, now: dt.datetime, draw: random.Random = _DRAW) -> bytes:
    """Answer one request of a client. Raises ProtocolError or ClientAuthError, whose sentence the client is to show."""
    if request.hostid:
        # With the key, as anybody can name a computer's number.
        await Turn(("scheduler", request.hostid, request.authenticator))
    known = await catalogue.suiting(request.code_sign_key)
    host_id, taken = request.hostid, TakenJobs(known)
    # A request that reports jobs writes before everything is known. One that finds no ready job searches the queue.
    locks, noutdated, is_enrolled = bool(request.results), 0, False
    if request.wants_work:
        await job_cache.fill(known)
        locks = locks or not job_cache.has_jobs(known)
    # Each try draws the same: another draw would fall on apps that have ready jobs more often than on the others.
    seed = draw.random() if len(known.apps) > 1 else None
    for _ in range(5):
        try:
            drawn = draw if seed is None else random.Random(seed)
            steps = _steps(request, host_id, known, taken, now, drawn, locks=locks, is_enrolled=is_enrolled)
            account, answered = await (Transaction(steps) if locks else steps)
            break
        except identify.UnknownHost as unknown:
            host_id = await in_thread(identify.enrol, unknown, request, now)
            is_enrolled = True
        except writes.Outdated:
            taken.release()
            noutdated += 1
            locks, taken = True, TakenJobs(known, takes=noutdated < 2)
        finally:
            taken.release()
    else:
        raise ClientAuthError(ERR_GENERIC, "This computer's record keeps changing. Try again in a minute.")
    await best_effort(_note_key_use(account, host_id, now))
    await best_effort(_converge(request, account, answered))
    await best_effort(preferences.keep_newer(request, account, now))
    return render_reply(answered)


async def _steps(
    request: SchedulerRequest,
    host_id: int,
    known: Catalogue,
    taken: TakenJobs,
    now: dt.datetime,
    draw: random.Random,
    *,
    locks: bool,
    is_enrolled: bool,
) -> tuple[Account, SchedulerReply]:
    """The requesting client, and the answer to it."""
    account = await identify.find_account(request, host_id, locks=locks, is_enrolled=is_enrolled)
    answered = await _answer(request, account, known, taken, now, draw, is_locked=locks)
    return account, answered


async def _answer(
    request: SchedulerRequest,
    account: Account,
    known: Catalogue,
    taken: TakenJobs,
    now: dt.datetime,
    draw: random.Random,
    *,
    is_locked: bool,
) -> SchedulerReply:
    """What is answered, once what was reported, and what is sent, is stored."""
    host = account.host
    assert host is not None  # identify.find_account sees to that
    reported = reports.judge(account, host.id, request, now)
    key_step = known.code_keys.step(request.code_sign_key)
    if not (key_step.reaches_current or request.is_anonymous):
        # It would refuse all programs: they are signed with the key in force.
        request.sends_no_work = True
    work, stays = _begin(request, account, host, known, reported, now, draw)
    changes = Changes(trickles=trickles.rows(request, account, host.id))
    counted, records = await _store_reports(account, host, work, reported, now, is_locked=is_locked)
    queries = _queries(work, draw)
    jobs, waiting = await _jobs(account.user_id, queries, work, taken, draw, is_locked=is_locked)
    judged = _count_reports(work, reported, counted, records, account.jobs_of_day, now)
    began = _send(work, jobs, changes, account.jobs_of_day, now)
    _add_records(work, changes, records.ids, judged, began)
    reasons_given = await _reasons(request, key_step, work, queries, waiting)
    named_until = reports.named_until(account, host, request, now)
    repeats = reports.repeats(account, host, request)
    is_looked_for = request.asks_for_jobs and not dispatch.asks_too_soon(request, account, now)
    asked_at = now.timestamp() if is_looked_for else host.work_asked_at
    host_record.fill_host_record(request, host, named_until, repeats, asked_at, reasons_given, changes)
    changes.record |= writes.jobs_of_day_columns(account.jobs_of_day)
    ready = taken.keep({each.job.id for each in work.selection.sent})
    written = await writes.write(host, account.user_id, changes, ready, now, is_locked=is_locked)
    answered = reply.reply_to(request, account, host, reasons_given, now)
    answered.about_project_xml = known.gui_urls_xml if request.is_anonymous else known.about_project_xml
    reply.add_key(answered, key_step, stays, known, request.is_anonymous)
    reply.add_jobs(answered, work, written.sent, now)
    # One acknowledgement is for all of them, also for what was dropped: without it the client would send all again, and
    # more each time, until its requests are too long.
    answered.acks_messages = bool(request.trickles) or request.has_unread_trickles
    if request.has_unread_trickles:
        trickles.log.warning("trickles_unread", host=host.id, nmessages=len(request.trickles))
        answered.notices.append(Notice(trickles.SOME_UNREAD, is_notice=True))
    if not written.has_all_trickles:
        trickles.log.warning("trickles_dropped", host=host.id, nmessages=len(request.trickles))
        answered.notices.append(Notice(trickles.SOME_DROPPED, is_notice=True))
    answered.aborts, answered.aborts_if_not_started = reports.unneeded(account, host.id, request, known.generation, now)
    return answered


def _begin(
    request: SchedulerRequest,
    account: Account,
    host: KnownHost,
    known: Catalogue,
    reported: list[Report],
    now: dt.datetime,
    draw: random.Random,
) -> tuple[Dispatch, list[KnownResult]]:
    """What fits the computer, and which lost jobs go out again; the jobs that stay on the computer."""
    lost = reports.lost(account, host.id, request)
    gone = {report.known.id for report in reported} | {each.id for each in lost}
    stays = [
        each
        for each in account.results.values()
        if each.host_id == host.id and each.server_state == ServerState.IN_PROGRESS and each.id not in gone
    ]
    work = dispatch.begin(request, account, known, stays, now, draw)
    if host.id == request.hostid:
        dispatch.send_again(work, request, account.user_id, lost, now)
    else:
        work.lost = lost
    return work, stays


async def _store_reports(
    account: Account, host: KnownHost, work: Dispatch, reported: list[Report], now: dt.datetime, *, is_locked: bool
) -> tuple[set[int], StoredRecords]:
    """Which of the results that were reported or lost count; the (host, version) records, locked if any does."""
    rows = [report.row for report in reported] + [reports.lost_row(each) for each in work.lost]
    if not rows:
        return set(), account.records
    if not is_locked:
        raise writes.Outdated
    claimed = [report.known.workunit_id for report in reported if report.known.host_id is None]
    counted, locked = await store.report(host.id, rows, claimed, account.jobs_of_day, now)
    return counted, locked if counted else account.records


def _count_reports(
    work: Dispatch,
    reported: list[Report],
    counted: set[int],
    records: StoredRecords,
    jobs_of_day: JobsOfDay,
    now: dt.datetime,
) -> set[RecordKey]:
    """Continue with the locked records, in which reports and lost jobs count; the keys of those that changed."""
    if not counted:
        return set()
    dispatch.renew_records(work, records.records)
    ended = reports.endings(reported, work.lost, counted)
    reports.count_undone(ended, jobs_of_day, work.selection.records, work.selection.today)
    known, own = work.catalogue, work.selection.records
    judged = reports.count(ended, known.apps, known.versions_by_app, own, work.computer, now)
    # A new version's record is stored when a job of it is sent, and not before.
    return judged & records.ids.keys()


def _queries(work: Dispatch, draw: random.Random) -> list[JobQuery]:
    """What to look for besides the jobs that are sent again."""
    for each, choice in work.again:
        assert each.job is not None  # send_again sees to that
        work.selection.count(each.job, choice)
    return dispatch.job_queries(work, draw)


async def _jobs(
    user_id: int, queries: list[JobQuery], work: Dispatch, taken: TakenJobs, draw: random.Random, *, is_locked: bool
) -> tuple[list[Job], Waiting | None]:
    """Ready jobs or, if there are too few of an app, from the queues, for which the computer has to be locked."""
    if taken.take(queries, user_id):
        return taken.jobs, None
    if not is_locked:
        raise writes.Outdated
    return await _picked(user_id, queries, work, draw)


async def _picked(
    user_id: int, queries: list[JobQuery], work: Dispatch, draw: random.Random
) -> tuple[list[Job], Waiting | None]:
    """Jobs from the heads of the queues and, if those have too few, from elsewhere, with counts of waiting jobs.

    Last of all come copies that are kept for others: if nothing else suits, nobody has to go without.
    """
    known = work.catalogue
    jobs, heads = await queue.pick(user_id, queries)
    found = Counter([job.app_id for job in jobs])
    short = [
        dispatch.from_random_place(query, query.most - found[query.app_id], known.apps[query.app_id], draw)
        for query in queries
        if found[query.app_id] < query.most
    ]
    waiting = None
    if short:
        others = dispatch.queries_of_other_apps(work, queries, sum(query.most for query in short))
        kept = [query.with_ties() for query in queries + others if query.avoids_ties and not query.is_strict]
        more, waiting = await queue.pick_elsewhere(user_id, short + others + kept, queries + others, jobs)
        jobs += {job.id: job for job in more}.values()
        found.update([job.app_id for job in more])
    for query in queries:
        known.note_head(query.app_id, heads.get(query.app_id) if found[query.app_id] >= query.most else None)
    job_cache.forget(jobs, work.ties)
    return jobs, waiting


def _send(
    work: Dispatch, jobs: list[Job], changes: Changes, jobs_of_day: JobsOfDay, now: dt.datetime
) -> set[RecordKey]:
    """Choose the jobs to send; the records that begin a spell of probation or get a quota."""
    selection = work.selection
    for job in jobs:
        selection.offer(job)
    began = set()
    if selection.sent:
        jobs_of_day.begin(selection.today)
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
        changes.jobs.append(
            writes.job_row(
                each.job,
                each.choice,
                believed_benchmark(work.computer.p_fpops, dispatch.ceilings()),
                now + dt.timedelta(seconds=each.job.delay_bound_secs),
                work.ties,
                one_per_user=selection.apps[each.job.app_id].one_result_per_user,
                must_replicate=each.must_replicate,
            )
        )
    return began


def _add_records(
    work: Dispatch, changes: Changes, ids: dict[RecordKey, int], judged: set[RecordKey], began: set[RecordKey]
) -> None:
    """The values to store for the records that reports or jobs changed."""
    selection = work.selection
    new = {each.choice.key for each in selection.sent if each.choice.key not in ids}
    # In the order in which all others lock them.
    for key in sorted(judged | began | new, key=lambda key: ids.get(key, 0)):
        row = writes.record_row(key, selection.records[key], ids.get(key), work.inherited.get(key, 0))
        (changes.added if key not in ids else changes.judged if key in judged else changes.begun).append(row)


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
        key = ClientKey.objects.filter(pk=account.key_id)
        await in_thread(key.update, last_used_at=now, host_id=host_id)


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
