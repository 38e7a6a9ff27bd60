"""Builds the scheduler reply: account and computer, keys, and the jobs to send."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from django.conf import settings

from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from portal.clients.database.settings_cache import cached_setting
from portal.wire.credentials import external_cpid
from scheduler.engine.choice import variants
from scheduler.engine.choice.client_versions import is_warned, number_of, warning
from scheduler.engine.facts import Choice, Job
from scheduler.engine.outputs import upload_name
from scheduler.engine.project_preferences import elements
from scheduler.engine.request import ANONYMOUS, CPU, SchedulerRequest
from scheduler.engine.trickle_downs import TrickleDownPlan, element
from scheduler.files import addresses
from scheduler.files.certificates import size_key, upload_certificate
from scheduler.programs.catalogue import Catalogue
from scheduler.programs.code_signing import KeyStep
from scheduler.rpc.choice.computer import client_limits
from scheduler.rpc.choice.dispatch import Dispatch, told_deadline
from scheduler.rpc.rows import KnownResult
from scheduler.rpc.store import Account, Credit, KnownHost
from scheduler.rpc.trickles import SOME_DROPPED, SOME_UNREAD, log
from scheduler.wire.replies import HostCard, JobCard, Notice, Person, SchedulerReply, VersionCard

_PUBLISHED: Final = Rules.published()
OTHER_KEY: Final = (
    "BOINC on this computer has a code-signing key that is not this project's, and would refuse all of its programs. "
    "Remove the project in BOINC and add it again."
)


@cached_setting
def _about_project() -> dict[str, Any]:
    """Return the fields that are the same in every reply."""
    return {
        "project_name": settings.SITE_NAME,
        "download_url": addresses.download_url(""),
        "upload_url": addresses.upload_url(),
        # A clock that is a little fast must not make a client ask too soon.
        "request_delay_secs": max(
            settings.SCHEDULER_REQUEST_DELAY_SECS, math.ceil(1.01 * settings.MIN_SENDWORK_INTERVAL_SECS)
        ),
        "next_rpc_secs": settings.SCHEDULER_NEXT_RPC_SECS,
    }


def reply_to(request: SchedulerRequest, account: Account, host: KnownHost, now: dt.datetime) -> SchedulerReply:
    """Start a reply with the account, the computer, preferences and acknowledgements; the rest is added to it."""

    def recent(credit: Credit) -> float:
        return decayed(credit.expavg, credit.expavg_at, now.timestamp(), _PUBLISHED)

    return SchedulerReply(
        **_about_project(),
        # From 8.0 on, clients that have the project at another address adopt this one and drop all their tasks.
        master_url=settings.PROJECT_URL if request.lists_no_task else "",
        person=Person(
            account.user_id,
            account.user_name,
            account.email_hash,
            account.cross_project_id,
            external_cpid(account.cross_project_id, account.email),
            account.created_at,
            account.credit.total,
            recent(account.credit),
        ),
        host=HostCard(
            host.id, host.id != request.hostid, host.venue, host.created_at, host.credit.total, recent(host.credit)
        ),
        preferences=account.preferences,
        project_preferences="" if account.project_preferences is None else elements(account.project_preferences),
        files_to_delete=account.unneeded_files,
        result_acks=list(dict.fromkeys(result.name for result in request.results)),
    )


def notices(request: SchedulerRequest, reasons: list[str], now: dt.datetime, *, is_urgent: bool) -> list[Notice]:
    """Say why nothing was sent, as a notice if the owner has to know, and warn of a client that is too old."""
    refusals = [
        Notice(text, is_notice=True) if is_urgent else Notice(f"No tasks sent: {text[0].lower()}{text[1:]}")
        for text in reasons
    ]
    limits = client_limits()
    if is_warned(number_of(request.client_version), limits, now) and request.wants_work:
        refusals.append(Notice(warning(request.client_version, limits), is_notice=True))
    return refusals


def add_key(
    reply: SchedulerReply, step: KeyStep, running: list[KnownResult], catalogue: Catalogue, is_anonymous: bool
) -> None:
    """Add the project's key, if the client has none or an older one, and new signatures of files it may be fetching."""
    reply.code_sign_key_xml = step.xml
    if step.xml:
        versions = {result.version_id: None for result in running if result.version_id in catalogue.version_xml}
        reply.resigned_xml = [catalogue.version_xml[id_] for id_ in versions if id_ is not None]
    elif not (step.reaches_current or is_anonymous):
        reply.notices.append(Notice(OTHER_KEY, is_notice=True))


def acknowledge_messages(reply: SchedulerReply, request: SchedulerRequest, host_id: int, *, has_dropped: bool) -> None:
    """Acknowledge all trickle-up messages together, even dropped ones; otherwise the client would send them all again,
    with more each time, until its requests were too long.
    """
    reply.acks_messages = bool(request.trickles) or request.has_unread_trickles
    if request.has_unread_trickles:
        log.warning("trickles_unread", host=host_id, nmessages=len(request.trickles))
        reply.notices.append(Notice(SOME_UNREAD, is_notice=True))
    if has_dropped:
        log.warning("trickles_dropped", host=host_id, nmessages=len(request.trickles))
        reply.notices.append(Notice(SOME_DROPPED, is_notice=True))


def add_messages(reply: SchedulerReply, plan: TrickleDownPlan) -> None:
    """Add messages to running jobs, and the later deadlines of jobs that the client has."""
    reply.trickle_downs_xml = [element(name, message) for name, message in plan.messages]
    reply.later_deadlines = plan.later


def add_jobs(reply: SchedulerReply, dispatch: Dispatch, names: Mapping[int, str], now: dt.datetime) -> None:
    """Add the jobs to send, by their current ``names``, and those sent again, with their apps and versions."""
    catalogue = dispatch.catalogue
    jobs = [
        (_named(sent.job, names[sent.job.id]), sent.choice, now.timestamp() + sent.job.delay_bound_secs)
        for sent in dispatch.selection.sent
        if sent.job.id in names
    ]
    jobs += [
        (result.job, choice, told_deadline(result.deadline_at or 0.0))
        for result, choice in dispatch.again
        if result.job is not None
    ]
    apps = dict.fromkeys(job.app_id for job, _, _ in jobs)
    reply.apps_xml = [catalogue.app_xml[app_id] for app_id in apps]
    chosen = {choice.key.version_id: choice for _, choice, _ in jobs if choice.version is not None}
    reply.versions = [_version_card(choice, catalogue) for choice in chosen.values()]
    reply.jobs = [_job_card(job, choice, deadline_at, catalogue) for job, choice, deadline_at in jobs]


def _named(job: Job, name: str) -> Job:
    """Return the job with its current name: only a restore of the database renames waiting jobs."""
    return job if job.name == name else msgspec.structs.replace(job, name=name)


def _version_card(choice: Choice, catalogue: Catalogue) -> VersionCard:
    version = choice.version
    assert version is not None  # anonymous platform: the client has its versions
    plan_class = catalogue.plan_classes.get(version.plan_class)
    return VersionCard(
        app_name=catalogue.app_names[version.app_id],
        version_num=version.version_num,
        platform=version.platform,
        plan_class=version.plan_class,
        avg_ncpus=choice.usage.ncpus,
        flops=choice.flops,
        gpu_type=version.processor_type if version.processor_type != CPU else "",
        gpu_usage=choice.usage.gpus,
        files=catalogue.version_files[version.id],
        files_xml=catalogue.version_xml[version.id],
        gpu_ram_bytes=plan_class.gpu_ram_used_bytes if plan_class is not None else 0,
        nthreads=max(1, int(choice.usage.ncpus)) if plan_class is not None and plan_class.nthreads_cmdline else None,
    )


def _job_card(job: Job, choice: Choice, deadline_at: float, catalogue: Catalogue) -> JobCard:
    program = choice.version or choice.client_version
    assert program is not None  # there is always one
    details = job.details
    assert details is not None  # they are read with every job that may be sent
    platform = program.platform or ANONYMOUS
    return JobCard(
        result_name=job.name,
        workunit_name=details.workunit_name,
        app_name=catalogue.app_names[job.app_id],
        version_num=program.version_num,
        platform=platform,
        plan_class=program.plan_class,
        deadline_at=deadline_at,
        fpops_est=job.fpops_est,
        fpops_bound=job.fpops_bound,
        memory_bytes=job.memory_bytes,
        disk_bytes=job.disk_bytes,
        command_line=details.command_line,
        inputs=variants.files_for(details.input_files, program.plan_class, platform, platform) or [],
        outputs=details.output_files,
        certificates=[
            upload_certificate(upload_name(job.name, number), int(file["max_nbytes"]))
            for number, file in enumerate(details.output_files)
        ],
        size_keys=[size_key(upload_name(job.name, number)) for number in range(len(details.output_files))],
    )
