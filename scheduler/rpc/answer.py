"""The scheduler RPC as one use case: identify the client, take reports, send jobs.

Most requests are read, get ready jobs (`scheduler.ready_jobs.job_cache`), lock and write: three statements, of which
the last two are the transaction. Simultaneous requests may be read, and written, together
(`portal.clients.database.batching`), so nothing here may block.

The transaction locks the computers and the jobs first. It leaves out a request whose computer is locked or was written
since it was read, or one of whose jobs is no longer available. Such a request is answered again, with the computer
locked before it is read. A request that reports jobs, or for which no jobs are ready, is answered this way from the
start. This way has at most nine statements, whatever the number of jobs: begin, lock, read, report, lock the ready
jobs, pick if others have them, pick elsewhere or diagnose, write, commit.

Locks are taken in the order of the whole project server: the computer; workunits of reported results by id, then these
results; with reports the computer's (host, version) records; jobs, with SKIP LOCKED.

Everything may be repeated. If a reply is lost, the next request does not name the jobs that were in it, and again
reports what was not acknowledged.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from typing import Final, NamedTuple

from credit.engine.states import ServerState
from portal.clients.effects import ExclusiveKey, Transaction, in_thread
from portal.clients.request_handler import best_effort
from portal.models import User
from portal.people.accounts import ClientAuthError, note_key_use
from portal.wire import credentials
from portal.wire.boinc_errors import ERR_GENERIC
from scheduler.engine.facts import JobQuery, RecordKey
from scheduler.engine.request import SchedulerRequest
from scheduler.programs.catalogue import Catalogue, catalogue_for_key
from scheduler.programs.code_signing import KeyStep
from scheduler.ready_jobs import job_cache
from scheduler.ready_jobs.job_cache import TakenJobs
from scheduler.rpc import host_record, identify, preferences, reply, reports, store, trickles, writes
from scheduler.rpc.choice import finding
from scheduler.rpc.choice.dispatch import Dispatch, begin, sort_lost
from scheduler.rpc.choice.job_queries import job_queries
from scheduler.rpc.choice.refusals import is_urgent, messages
from scheduler.rpc.choice.sending import record_changes, send
from scheduler.rpc.queue import DiagnosisQuery
from scheduler.rpc.reports import Report
from scheduler.rpc.rows import KnownResult, WaitingCounts, WrittenRow
from scheduler.rpc.store import Account, KnownHost
from scheduler.rpc.writes import Changes
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
    """The reply, once reported and sent jobs are stored, and the account it is for."""

    account: Account
    answered: SchedulerReply


async def answer(request: SchedulerRequest, *, now: dt.datetime, draw: random.Random = _DRAW) -> bytes:
    """Answer one request of a client. Raises ProtocolError or ClientAuthError, whose sentence the client shows."""
    if request.hostid:
        # Together with the key, because anybody can name a computer's number.
        await ExclusiveKey(("scheduler", request.hostid, request.authenticator))
    catalogue = await catalogue_for_key(request.code_sign_key)
    host_id, is_enrolled = request.hostid, False
    # A request that reports jobs writes before everything is known. One that finds no ready job searches the queue.
    is_locked = bool(request.results)
    if request.wants_work:
        await job_cache.fill(catalogue)
        is_locked = is_locked or not job_cache.has_jobs(catalogue)
    # Each attempt makes the same random draw: another one would favour apps that have ready jobs.
    seed = draw.random() if len(catalogue.apps) > 1 else None
    for _ in range(MAX_ATTEMPTS):
        drawn = draw if seed is None else random.Random(seed)
        taken = TakenJobs(catalogue)
        attempt = _Attempt(request, catalogue, taken, now, drawn, is_locked)
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

    None, and nothing is stored, if the computer has to be locked first, or was written since it was read.
    """
    request, catalogue, now = attempt.request, attempt.catalogue, attempt.now
    identified = await identify.find_account(
        request, host_id, locks=attempt.is_locked, trickle_downs=catalogue.has_trickle_downs, is_enrolled=is_enrolled
    )
    if not isinstance(identified, identify.IdentifiedClient):
        return identified
    account, host = identified

    key_step = catalogue.code_keys.step(request.code_sign_key)
    if not (key_step.reaches_current or request.is_anonymous):
        # The client would refuse all programs: they are signed with the key in force.
        request.sends_no_work = True
    reported = reports.judge(account, host.id, request, now)
    dispatch, running = _begin(attempt, account, host, reported)
    if (reported or dispatch.lost) and not attempt.is_locked:
        return None
    message_plan = trickles.plan_messages(request, account, running, catalogue.apps, now)
    reports_taken = await _take_reports(account, host, dispatch, reported, sorted(message_plan.deadlines), now)

    queries = job_queries(dispatch, attempt.draw)
    candidates = await finding.ready_jobs(queries, attempt.taken, account.user_id, is_locked=attempt.is_locked)
    if candidates is None and not attempt.is_locked:
        return None
    candidates = candidates or await finding.pick(dispatch, queries, account.user_id, now, attempt.draw)
    sending = send(dispatch, candidates.jobs, account.jobs_of_day, now)
    reasons = await _reasons(request, key_step, dispatch, queries, candidates.waiting)

    changes = Changes(
        jobs=sending.rows,
        records=record_changes(dispatch, reports_taken.ids, reports_taken.judged, sending.begun),
        trickles=trickles.rows(request, account, host.id),
        host=host_record.changes(request, account, host, reasons, now),
        message_plan=message_plan,
    )
    ready = attempt.taken.keep({sent.job.id for sent in dispatch.selection.sent})
    if attempt.is_locked:
        written: WrittenRow | None = await writes.write_locked(host, account.user_id, changes, now)
    else:
        written = await writes.write(host, account.user_id, changes, ready, now)
    if written is None:
        return None

    answered = reply.reply_to(request, account, host, now)
    answered.notices += reply.notices(request, reasons, now, is_urgent=is_urgent(dispatch.selection))
    answered.about_project_xml = catalogue.gui_urls_xml if request.is_anonymous else catalogue.about_project_xml
    reply.add_key(answered, key_step, running, catalogue, request.is_anonymous)
    reply.add_jobs(answered, dispatch, written.sent or {}, now)
    reply.add_messages(answered, message_plan)
    reply.acknowledge_messages(answered, request, host.id, has_dropped=written.has_dropped_trickles)
    answered.aborts, answered.aborts_if_not_started = reports.unneeded(
        account, host.id, request, catalogue.generation, now
    )
    return _Served(account, answered)


def _begin(
    attempt: _Attempt, account: Account, host: KnownHost, reported: list[Report]
) -> tuple[Dispatch, list[KnownResult]]:
    """Choose versions for the computer and lost jobs to send again; also return the jobs that stay there."""
    request, now = attempt.request, attempt.now
    lost = reports.lost(account, host.id, request)
    gone = {report.result.id for report in reported} | {result.id for result in lost}
    running = [
        result
        for result in account.results.values()
        if result.host_id == host.id and result.server_state == ServerState.IN_PROGRESS and result.id not in gone
    ]
    dispatch = begin(request, account, attempt.catalogue, running, now, attempt.draw)
    if host.id == request.hostid:
        sort_lost(dispatch, request, account.user_id, lost, now)
    else:
        dispatch.lost = lost
    return dispatch, running


class _ReportsTaken(NamedTuple):
    """The row numbers of the computer's (host, version) records, and the keys of those that the reports changed."""

    ids: dict[RecordKey, int]
    judged: set[RecordKey]


async def _take_reports(
    account: Account, host: KnownHost, dispatch: Dispatch, reported: list[Report], extended: list[int], now: dt.datetime
) -> _ReportsTaken:
    """Store the results that were reported or lost.

    If some count, continue with the locked records, in which they are counted. ``extended``: results that will get
    another deadline, which are locked before the records.
    """
    rows = [report.row for report in reported] + [reports.lost_row(result) for result in dispatch.lost]
    if not rows:
        return _ReportsTaken(account.records.ids, set())
    claimed = [report.result.workunit_id for report in reported if report.result.host_id is None]
    counted, records = await store.report(host.id, rows, claimed, extended, account.jobs_of_day, now)
    if not counted:
        return _ReportsTaken(account.records.ids, set())
    dispatch.continue_with(records.records)
    ended = reports.endings(reported, dispatch.lost, counted)
    selection, catalogue = dispatch.selection, dispatch.catalogue
    reports.count_undone(ended, account.jobs_of_day, selection.records, selection.today)
    judged = reports.count(ended, catalogue.apps, catalogue.versions_by_app, selection.records, dispatch.computer, now)
    # A new version's record is only stored when a job of it is sent.
    return _ReportsTaken(records.ids, judged & records.ids.keys())


async def _reasons(
    request: SchedulerRequest,
    key_step: KeyStep,
    dispatch: Dispatch,
    queries: list[JobQuery],
    waiting: WaitingCounts | None,
) -> list[str]:
    """Return why nothing is sent, if so. A client with a foreign key gets a notice instead."""
    if dispatch.selection.sent or dispatch.again:
        return []
    if queries and not waiting:
        waiting = await DiagnosisQuery(queries)
    if request.is_cut:
        return [TOO_LONG]
    if request.is_anonymous or key_step.reaches_current:
        return messages(dispatch.selection, waiting)
    return [KEY_FOLLOWS] if key_step.xml else []


async def _note_key_use(account: Account, host_id: int, now: dt.datetime) -> None:
    """Record the use of a key once a day: enough for the owner's list of keys, and all other requests are spared a
    write.
    """
    used = account.key_used_at
    if used is None or now.timestamp() - used > KEY_USE_NOTED_EVERY_SECS:
        await in_thread(note_key_use, account.key_id, host_id, now)


async def _converge(request: SchedulerRequest, account: Account, answered: SchedulerReply) -> None:
    """Adopt the person's cross-project id that the client found at an older account of theirs, and reply with it.

    Only from a strong key: weak ones are handed to computers that need not be trusted with the account. The client
    determines which account is the oldest, because it sees those at all of its projects.
    """
    reported = request.cross_project_id.lower()
    if reported == account.cross_project_id or request.has_weak_key:
        return
    if len(reported) == 32 and set(reported) <= set("0123456789abcdef"):
        await in_thread(User.objects.filter(pk=account.user_id).update, cross_project_id=reported)
        answered.person.cross_project_id = reported
        answered.person.external_cpid = credentials.external_cpid(reported, account.email)
