"""The scheduler RPC as one use case and one transaction: who asks, what came back, what goes out.

Most requests read, are given ready jobs (`scheduler.ready_jobs.job_cache`), and write: three statements in two round
trips, of which the second is the transaction. Several that come at the same time may be read, and written, together
(`portal.clients.batching`), so nothing here may block. The transaction locks the computers and the jobs first, and
leaves out the requests whose computer is locked or was written since it was read, or one of whose jobs is not to be had
any more. These are answered once more, as at once are those that report jobs or find none ready: the computer is locked
before it is read. That has at most eight statements, whatever the number of jobs: begin, lock, read, report, pick, pick
elsewhere or diagnose, write, commit. If then, too, a ready job is gone, all is done a third time, without ready jobs.

Locks, in the order of all parts of the project server: the computer; workunits of reported results by id, then these
results; with reports the computer's (host, version) records; jobs, with SKIP LOCKED. Everything may be repeated: a
reply that is lost on its way is healed at the next request, which does not name the jobs that were in it, and reports
again what was not acknowledged.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import random
from collections import Counter
from typing import Any, Final

from django.conf import settings

from credit.engine import probation
from credit.engine.facts import HostVersionFacts
from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from portal.clients.request_handler import best_effort
from portal.clients.settings_cache import once
from portal.clients.wants import Steps, Transaction, Turn, in_thread
from portal.models import ClientKey, User
from portal.people.accounts import ClientAuthError
from portal.wire.boinc_errors import ERR_GENERIC
from scheduler.engine import versions
from scheduler.engine.facts import Ask, Choice, Job, JobDetails, RecordKey
from scheduler.engine.request import ANONYMOUS, CPU, SchedulerRequest
from scheduler.files import addresses, keys
from scheduler.programs import catalogue
from scheduler.programs.catalogue import Catalogue
from scheduler.ready_jobs import job_cache
from scheduler.ready_jobs.job_cache import Hand
from scheduler.rpc import dispatch, host_record, identify, preferences, reports, store, trickles
from scheduler.rpc import write as rpc_write
from scheduler.rpc.dispatch import Dispatch
from scheduler.rpc.store import Account, Diagnosis, JobsOfDay, KnownHost, Waiting
from scheduler.rpc.write import Changes
from scheduler.wire import replies
from scheduler.wire.replies import HostCard, JobCard, Notice, Person, SchedulerReply, VersionCard

_PUBLISHED: Final = Rules.published()
KEY_USE_NOTED_EVERY_SECS: Final = 86_400.0
TOO_LONG: Final = "The request was too long to be read whole; what it reports is being taken a part at a time"
KEY_FOLLOWS: Final = "This project's code-signing key has changed more than once, and BOINC gets one change at a time"
OTHER_KEY: Final = (
    "BOINC on this computer has a code-signing key that is not this project's, and would refuse all of its programs. "
    "Remove the project in BOINC and add it again."
)
_DRAW: Final = random.Random()


def answer(request: SchedulerRequest, *, now: dt.datetime, draw: random.Random = _DRAW) -> Steps[bytes]:
    """Answer one request of a client. Raises ProtocolError or ClientAuthError, whose sentence the client is to show."""
    if request.hostid:
        # With the key, as anybody can name a computer's number.
        yield Turn(("scheduler", request.hostid, request.authenticator))
    known = yield from catalogue.suiting(request.code_sign_key)
    host_id, hand = request.hostid, Hand(known)
    # Who reports jobs writes before all is known, and who finds no ready job looks for some.
    locks, noutdated = bool(request.results), 0
    if any(wish.secs > 0 or wish.instances > 0 for wish in request.wishes.values()):
        yield from job_cache.fill(known)
        locks = locks or not job_cache.has_jobs(known)
    # Each try draws the same: another draw would fall on apps that have ready jobs more often than on the others.
    seed = draw.random() if len(known.apps) > 1 else None
    for _ in range(5):
        try:
            drawn = draw if seed is None else random.Random(seed)
            steps = _steps(request, host_id, known, hand, now, drawn, locks=locks)
            account, reply = (yield Transaction(steps)) if locks else (yield from steps)
            break
        except identify.UnknownHost as unknown:
            host_id = yield from in_thread(identify.enrol, unknown, request, now)
        except rpc_write.Outdated:
            hand.empty()
            noutdated += 1
            locks, hand = True, Hand(known, takes=noutdated < 2)
        finally:
            hand.empty()
    else:
        raise ClientAuthError(ERR_GENERIC, "This computer's record changes all the time. Try again in a minute.")
    yield from best_effort(_note_key_use(account, host_id, now))
    yield from best_effort(_converge(request, account))
    yield from best_effort(preferences.keep_newer(request, account, now))
    return replies.render_reply(reply)


def _steps(
    request: SchedulerRequest,
    host_id: int,
    known: Catalogue,
    hand: Hand,
    now: dt.datetime,
    draw: random.Random,
    *,
    locks: bool,
) -> Steps[tuple[Account, SchedulerReply]]:
    """Who asks, and what is answered."""
    account = yield from identify.find(request, host_id, locks=locks)
    reply = yield from _answer(request, account, known, hand, now, draw, is_locked=locks)
    return account, reply


def _answer(
    request: SchedulerRequest,
    account: Account,
    known: Catalogue,
    hand: Hand,
    now: dt.datetime,
    draw: random.Random,
    *,
    is_locked: bool,
) -> Steps[SchedulerReply]:
    host = account.host
    assert host is not None  # lookup.find sees to that
    reported = reports.judge(account, host.id, request, now)
    lost = reports.lost(account, host.id, request)
    gone = {report.known.id for report in reported} | {each.id for each in lost}
    stays = [r for r in account.results.values() if r.host_id == host.id and r.server_state == 4 and r.id not in gone]
    key_step = known.code_keys.step(request.code_sign_key)
    if not (key_step.reaches_current or request.is_anonymous):
        # It would refuse all programs: they are signed with the key in force.
        request.sends_no_work = True
    work = dispatch.begin(request, account, known, stays, now.date())
    if host.id == request.hostid:
        dispatch.send_again(work, request, lost, now)
    else:
        work.lost = lost
    changes = Changes(trickles=trickles.rows(request, account, host.id))
    rows = [report.row for report in reported] + [reports.lost_row(each) for each in work.lost]
    if rows and not is_locked:
        raise rpc_write.Outdated
    counted, records = set[int](), account.records
    if rows:
        counted, locked = yield from store.report(host.id, rows, account.jobs_of_day, now)
        records = locked if counted else records
    for each, choice in work.again:
        assert each.job is not None  # send_again sees to that
        work.filling.count(each.job, choice)
    asks = dispatch.asks(work, draw)
    jobs, waiting = yield from _jobs(account.user_id, asks, work, hand, draw, is_locked=is_locked)
    changed: set[RecordKey] = set()
    if counted:
        dispatch.renew_records(work, records.records)
        changed = reports.count(
            [r for r in reported if r.known.id in counted], known.apps, work.filling.records, work.computer, now
        )
    for job in jobs:
        work.filling.offer(job)
    began = _send(work, changes, account.jobs_of_day, now)
    _add_records(work, changes, records.ids, changed, began)
    if asks and not work.filling.sent and not work.again:
        waiting = waiting or (yield Diagnosis(asks))
    words = [] if work.filling.sent or work.again else _words(request, key_step, work, waiting)
    host_record.describe(request, host, words, changes)
    changes.record |= rpc_write.jobs_of_day_columns(account.jobs_of_day)
    ready = hand.keep({each.job.id for each in work.filling.sent})
    sent = yield from rpc_write.write(host, account.user_id, changes, ready, now, is_locked=is_locked)
    reply = _reply(request, account, host, words, now)
    reply.about_project_xml = known.gui_urls_xml if request.is_anonymous else known.about_project_xml
    _add_key(reply, key_step, stays, known, request.is_anonymous)
    _add_jobs(reply, request, work, known, sent, now)
    if request.messages:
        reply.acks_messages = True
    reply.aborts, reply.aborts_if_not_started = reports.unneeded(account, host.id, request)
    return reply


def _words(request: SchedulerRequest, key_step: keys.KeyStep, work: Dispatch, waiting: Waiting | None) -> list[str]:
    """Why nothing is sent. To a client whose key is no key of ours a notice says it."""
    if request.is_cut:
        return [TOO_LONG]
    if request.is_anonymous or key_step.reaches_current:
        return dispatch.messages(work.filling, waiting)
    return [KEY_FOLLOWS] if key_step.xml else []


def _jobs(
    user_id: int, asks: list[Ask], work: Dispatch, hand: Hand, draw: random.Random, *, is_locked: bool
) -> Steps[tuple[list[Job], Waiting | None]]:
    """Ready jobs or, if there are too few of an app, from the queues, for which the computer has to be locked."""
    if hand.take(asks, user_id):
        return hand.jobs, None
    if not is_locked:
        raise rpc_write.Outdated
    return (yield from _picked(user_id, asks, work, draw))


def _picked(
    user_id: int, asks: list[Ask], work: Dispatch, draw: random.Random
) -> Steps[tuple[list[Job], Waiting | None]]:
    """Jobs from the heads of the queues and, if those have too little, from elsewhere; then also what waits there."""
    known = work.catalogue
    jobs, heads = yield from store.pick(user_id, asks)
    found = Counter([job.app_id for job in jobs])
    short = [
        dispatch.elsewhere(ask, ask.most - found[ask.app_id], known.apps[ask.app_id], draw)
        for ask in asks
        if found[ask.app_id] < ask.most
    ]
    waiting = None
    if short:
        others = dispatch.asks_of_others(work, asks, sum(ask.most for ask in short))
        more, waiting = yield from store.pick_elsewhere(user_id, short + others, asks + others, jobs)
        jobs += more
        found.update([job.app_id for job in more])
    for ask in asks:
        known.note_head(ask.app_id, heads.get(ask.app_id) if found[ask.app_id] >= ask.most else None)
    job_cache.forget(jobs, user_id)
    return jobs, waiting


def _send(work: Dispatch, changes: Changes, jobs: JobsOfDay, now: dt.datetime) -> set[RecordKey]:
    """What is stored of the jobs that go out; the records that begin a spell of probation with them, or get a quota."""
    fill = work.filling
    began = set()
    if fill.sent and not probation.counts_for(jobs.day, fill.today):
        jobs.day, jobs.counts = fill.today, {}
    for each in fill.sent:
        key = each.choice.key
        record = fill.records.get(key) or fill.records.setdefault(key, HostVersionFacts())
        since = record.host_scale_time
        if not record.max_jobs_per_day:
            # So that also one that never reports can be punished.
            record.max_jobs_per_day = versions.most_a_day(fill.apps[key.app_id], work.computer, key.processor_type)
            began.add(key)
        probation.count_sent(record, now.timestamp(), each.job.delay_bound_secs, fill.today)
        jobs.counts[key] = record.n_jobs_today
        if record.host_scale_time != since:
            began.add(key)
        changes.jobs.append(
            rpc_write.job_row(
                each.job,
                each.choice,
                now + dt.timedelta(seconds=each.job.delay_bound_secs),
                one_per_user=fill.apps[each.job.app_id].one_result_per_user,
                must_replicate=each.must_replicate,
            )
        )
    return began


def _add_records(
    work: Dispatch, changes: Changes, ids: dict[RecordKey, int], judged: set[RecordKey], began: set[RecordKey]
) -> None:
    """What is stored of the records that reports or jobs changed."""
    fill = work.filling
    new = {each.choice.key for each in fill.sent if each.choice.key not in ids}
    # In the order in which all others lock them.
    for key in sorted(judged | began | new, key=lambda key: ids.get(key, 0)):
        row = rpc_write.record_row(key, fill.records[key], ids.get(key), work.inherited.get(key, 0))
        (changes.added if key not in ids else changes.judged if key in judged else changes.begun).append(row)


@once
def _said_to_all() -> dict[str, Any]:
    """What every reply says of the project."""
    return {
        "project_name": settings.SITE_NAME,
        "master_url": settings.PROJECT_URL,
        "download_url": addresses.download_url(""),
        "upload_url": addresses.upload_url(),
        "request_delay_secs": settings.SCHEDULER_REQUEST_DELAY_SECS,
        "next_rpc_secs": settings.SCHEDULER_NEXT_RPC_SECS,
    }


def _reply(
    request: SchedulerRequest, account: Account, host: KnownHost, words: list[str], now: dt.datetime
) -> SchedulerReply:
    """Everything but jobs: account, computer, acknowledgements, and why nothing was sent."""

    def recent(credit: store.Credit) -> float:
        return decayed(credit.expavg, credit.expavg_at, now.timestamp(), _PUBLISHED)

    return SchedulerReply(
        **_said_to_all(),
        person=Person(
            account.user_id,
            account.user_name,
            hashlib.md5(account.email.lower().encode()).hexdigest(),
            account.cross_project_id,
            account.created_at,
            account.credit.total,
            recent(account.credit),
        ),
        host=HostCard(
            host.id, host.id != request.hostid, host.venue, host.created_at, host.credit.total, recent(host.credit)
        ),
        notices=[Notice(f"No jobs sent: {text[0].lower()}{text[1:]}") for text in words],
        preferences=account.preferences,
        result_acks=list(dict.fromkeys(result.name for result in request.results)),
    )


def _add_key(
    reply: SchedulerReply, step: keys.KeyStep, stays: list[store.KnownResult], known: Catalogue, is_anonymous: bool
) -> None:
    """The project's key, if the client has none or an older one; what it may just be fetching was signed anew."""
    reply.code_sign_key_xml = step.xml
    if step.xml:
        versions = {result.version_id: None for result in stays if result.version_id in known.version_xml}
        reply.signed_anew_xml = [known.version_xml[id_] for id_ in versions if id_ is not None]
    elif not (step.reaches_current or is_anonymous):
        reply.notices.append(Notice(OTHER_KEY, is_notice=True))


def _add_jobs(
    reply: SchedulerReply,
    request: SchedulerRequest,
    work: Dispatch,
    known: Catalogue,
    sent: set[int],
    now: dt.datetime,
) -> None:
    """The jobs that were really sent, and those that are sent again, with their apps and versions, each once."""
    jobs = [
        (each.job, each.choice, now.timestamp() + each.job.delay_bound_secs)
        for each in work.filling.sent
        if each.job.id in sent
    ]
    jobs += [(each.job, choice, each.deadline_at or 0.0) for each, choice in work.again if each.job is not None]
    apps = dict.fromkeys(job.app_id for job, _, _ in jobs)
    reply.apps_xml = [known.app_xml[app_id] for app_id in apps]
    chosen = {choice.key.version_id: choice for _, choice, _ in jobs if choice.version is not None}
    reply.versions = [_version_card(choice, known) for choice in chosen.values()]
    reply.jobs = [_job_card(job, choice, deadline_at, known) for job, choice, deadline_at in jobs]


def _version_card(choice: Choice, known: Catalogue) -> VersionCard:
    version = choice.version
    assert version is not None  # anonymous platform: the client has its versions
    return VersionCard(
        app_name=known.app_names[version.app_id],
        version_num=version.version_num,
        platform=version.platform,
        plan_class=version.plan_class,
        avg_ncpus=choice.usage.ncpus,
        flops=choice.flops,
        gpu_type=version.processor_type if version.processor_type != CPU else "",
        gpu_usage=choice.usage.gpus,
        files=known.version_files[version.id],
        files_xml=known.version_xml[version.id],
    )


def _job_card(job: Job, choice: Choice, deadline_at: float, known: Catalogue) -> JobCard:
    what = choice.version or choice.client_version
    assert what is not None  # one or the other
    details: JobDetails = job.details
    return JobCard(
        result_name=job.name,
        workunit_name=details.workunit_name,
        app_name=known.app_names[job.app_id],
        version_num=what.version_num,
        platform=what.platform or ANONYMOUS,
        plan_class=what.plan_class,
        deadline_at=deadline_at,
        fpops_est=job.fpops_est,
        fpops_bound=job.fpops_bound,
        memory_bytes=job.memory_bytes,
        disk_bytes=job.disk_bytes,
        command_line=details.command_line,
        inputs=details.input_files,
        outputs=details.output_files,
        certificates=[
            keys.upload_certificate(f"{job.name}_{number}", int(file["max_nbytes"]))
            for number, file in enumerate(details.output_files)
        ],
    )


def _note_key_use(account: Account, host_id: int, now: dt.datetime) -> Steps[None]:
    """Once a day is enough for the owner's list of keys, and spares every other request a write."""
    used = account.key_used_at
    if used is None or now.timestamp() - used > KEY_USE_NOTED_EVERY_SECS:
        key = ClientKey.objects.filter(pk=account.key_id)
        yield from in_thread(key.update, last_used_at=now, host_id=host_id)


def _converge(request: SchedulerRequest, account: Account) -> Steps[None]:
    """Take over the person's cross-project id that the client found at an older account of theirs.

    Only from a strong key: weak ones are handed to computers that need not be trusted with the account.
    """
    said = request.cross_project_id.lower()
    if said == account.cross_project_id or "_" in request.authenticator:
        return
    if len(said) == 32 and set(said) <= set("0123456789abcdef"):
        yield from in_thread(User.objects.filter(pk=account.user_id).update, cross_project_id=said)
