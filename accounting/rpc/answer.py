"""Answer one account-manager RPC: find the account and the computer, settle its totals, write, and reply.

A known computer costs two queries, the read of `store` and the write of `writes`. They are batched with those of other
requests, and no lock is held between them. A first contact is one transaction in a thread. It locks the user's row to
identify the computer, then the host's ledger and the rows below it, in the write.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson
import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounting.engine.addresses import address_key
from accounting.engine.choice.facts import device_types
from accounting.engine.choice.troubles import StoredTroubles, note_troubles
from accounting.engine.hardware_models import Usual
from accounting.engine.ledger import offer, settle
from accounting.engine.machine import Ceilings, Machine
from accounting.engine.states import LedgerChanges, Report
from accounting.ledger import partitions
from accounting.ledger.locks import lock_ledgers
from accounting.models import HostLedger
from accounting.rpc import account_keys, catalogue, contact_log, instructions, store, writes
from accounting.rpc.attachments import Attachments, account_key, attachments_of
from accounting.rpc.description import describe, description_digest
from accounting.rpc.recognise import Recognised, recognise
from accounting.wire.client_tasks import ReportedTasks
from accounting.wire.replies import AccountManagerReply, render_reply
from accounting.wire.requests import AccountManagerRequest, ReportedProject
from portal.clients import sync_driver
from portal.clients.database.settings_cache import cached_setting
from portal.clients.effects import ExclusiveKey, in_thread
from portal.clients.request_handler import best_effort
from portal.computers.groups import join_group
from portal.computers.host_changes import HostChangeRefused
from portal.models import ClientKey, Host, JoinToken, User
from portal.people.accounts import (
    ClientAuthError,
    authenticate_client,
    issue_client_key,
    make_client_key,
    note_key_use,
    refuse_key_if_blocked,
)
from portal.people.join_tokens import authenticate_join, check_usable, is_join_login
from portal.people.key_mails import tell_of_key
from portal.people.security_events import Source
from portal.wire import credentials
from portal.wire.boinc_errors import ERR_BAD_AUTHENTICATOR, ERR_GENERIC

log = structlog.get_logger("rpc")

# Retries when another request of the host comes between read and write. Each failure means that such a request
# succeeded.
MAX_ATTEMPTS: Final = 20
# The longest key that can be sent to other computers; longer ones were cut
_WHOLE_KEY: Final = re.compile("[!-~]{1,254}")
KEY_USE_NOTED_EVERY: Final = dt.timedelta(days=1)

Listed = dict[int, ReportedProject]
"""The request's known projects, by our id."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated client: its user, and its key. A client that came with a password or a join token has none yet.

    ``user``: the password's owner, as read for the check. ``is_key_shared``: all clients of the person have the key,
    because the site that moved in here gave it to them; this client gets its own.
    """

    user_id: int
    key_id: int | None = None
    is_key_shared: bool = False
    user: User | None = None
    join_token: JoinToken | None = None

    def new_key(self, host: Host, address: str) -> str:
        """Create a key for a client without one; empty if it has one. The user's row is locked."""
        source = Source(address)
        if self.join_token is not None:
            token = JoinToken.objects.get(pk=self.join_token.pk)
            # It may have been revoked since it was checked.
            check_usable(token, timezone.now())
            return make_client_key(self.join_token.user, ClientKey.Origin.JOIN, host, source=source)
        if self.is_key_shared:
            # Nobody typed a password, so nobody is notified.
            owner = User.objects.select_for_update(no_key=True).only("pk").get(pk=self.user_id)
            return make_client_key(owner, ClientKey.Origin.ATTACH, host, source=source, is_event=False)
        if self.user is None:
            return ""
        key = issue_client_key(self.user, ClientKey.Origin.ATTACH, host, source=source)
        tell_of_key(self.user, address)
        return key


async def answer(
    request: AccountManagerRequest, *, now: dt.datetime, address: str, caller: Caller | None = None
) -> bytes:
    """Answer one request of a client; ``address``: where it came from, for the limit on failed logins. ``caller``:
    whose request it is, if that was determined before it was read.

    Raises ProtocolError or ClientAuthError; their number and sentence go to the client.
    """
    # Before any transaction: a new partition locks the table, and must stay if the request fails.
    if not partitions.is_partition_known(now.date()):
        await in_thread(partitions.ensure_partition, now.date())
    projects = await catalogue.fresh()
    listed = _listed(request, projects)
    if request.authenticator and request.host_token:
        await ExclusiveKey(("account manager", request.host_token))
        known = await _answer_known(request, request.host_token, listed, projects, now)
        if known is not None:
            return known
    return await in_thread(_answer_unknown, request, listed, projects, now, address, caller)


async def _answer_known(
    request: AccountManagerRequest, host_token: str, listed: Listed, projects: catalogue.Catalogue, now: dt.datetime
) -> bytes | None:
    """Answer a computer that sends its key and its id. None if these do not belong together, or it may be another."""
    read = store.ReadByKey(credentials.key_hash(request.authenticator), host_token)
    for _ in range(MAX_ATTEMPTS):
        account = await read
        if account is None or _may_be_another(request, listed, account):
            return None
        done = await _settle_and_write(request, account, listed, projects, now)
        if done is not None:
            if _is_key_use_new(account, now):
                await best_effort(in_thread(note_key_use, account.key_id, account.host_id, now))
            return render_reply(done)
    raise _conflict()


def _may_be_another(request: AccountManagerRequest, listed: Listed, account: store.Account) -> bool:
    """Whether another client may send this computer's id, such as that of a copied data folder."""
    if request.host_cpid and account.cpid and request.host_cpid != account.cpid:
        return True
    hostids = account.hostids
    return any(project.hostid and hostids.get(id_, project.hostid) != project.hostid for id_, project in listed.items())


def _answer_unknown(
    request: AccountManagerRequest,
    listed: Listed,
    projects: catalogue.Catalogue,
    now: dt.datetime,
    address: str,
    caller: Caller | None,
) -> bytes:
    """Answer a first contact, a password login or a possible copy, in a thread: identify it, then settle."""
    caller = caller or find_caller(request, address)
    with transaction.atomic():
        try:
            hostids = {id_: project.hostid for id_, project in listed.items() if project.hostid}
            token = caller.join_token
            recognised = recognise(caller.user_id, request, hostids, now, token.pk if token is not None else None)
        except User.DoesNotExist:
            raise ClientAuthError(ERR_BAD_AUTHENTICATOR, "This account has just been deleted.") from None
        host = recognised.host
        new_key = caller.new_key(host, address)
        if token is not None and not recognised.is_new:
            # The ledger before the host, as in the write.
            lock_ledgers(host.owner_id, host.pk)
            # A computer that is already in the maximum number of groups joins all the same.
            with suppress(HostChangeRefused):
                join_group([host.pk], token.group)
        if caller.key_id is not None:
            note_key_use(caller.key_id, host.pk, now)
        key = new_key or request.authenticator
        done = sync_driver.run(_settle_identified(request, recognised, key, listed, projects, now))
    log.info("computer_attached" if recognised.is_new else "computer_recognised", host=host.pk, user=caller.user_id)
    # The client sends it with all later requests.
    done.authenticator = new_key
    return render_reply(done)


async def _settle_identified(
    request: AccountManagerRequest,
    recognised: Recognised,
    key: str,
    listed: Listed,
    projects: catalogue.Catalogue,
    now: dt.datetime,
) -> AccountManagerReply:
    read = store.ReadByKey(credentials.key_hash(key), recognised.host.token)
    for _ in range(MAX_ATTEMPTS):
        account = await read
        if account is None:
            HostLedger.objects.bulk_create([HostLedger(host=recognised.host)], ignore_conflicts=True)
            continue
        done = await _settle_and_write(request, account, listed, projects, now, recognised)
        if done is not None:
            return done
    raise _conflict()


def _conflict() -> ClientAuthError:
    return ClientAuthError(ERR_GENERIC, "This computer sent several requests at the same time. Try again in a minute.")


def find_caller(request: AccountManagerRequest, address: str) -> Caller:
    """Authenticate the client by its key, else by join token or password hash. Blocks. Raises ClientAuthError."""
    if request.authenticator:
        key = (
            ClientKey.objects.filter(
                key_hash=credentials.key_hash(request.authenticator), revoked_at=None, user__is_active=True
            )
            .values_list("pk", "user_id", "origin", "host_id")
            .first()
        )
        if key is None:
            refuse_key_if_blocked(credentials.key_hash(request.authenticator))
            raise ClientAuthError(
                ERR_BAD_AUTHENTICATOR,
                f"This computer's key is no longer valid. In BOINC, stop using {settings.SITE_NAME}, then add it"
                " again with your e-mail address and password, or a join token.",
            )
        return Caller(key[1], key_id=key[0], is_key_shared=key[2] == ClientKey.Origin.IMPORTED and key[3] is None)
    if is_join_login(request.name):
        token = authenticate_join(request.name, request.password_hash, address=address)
        return Caller(token.user_id, join_token=token)
    user = authenticate_client(
        request.name, request.password_hash, address=address, host_token=request.host_token or ""
    )
    return Caller(user.pk, user=user)


async def _settle_and_write(
    request: AccountManagerRequest,
    account: store.Account,
    listed: Listed,
    projects: catalogue.Catalogue,
    now: dt.datetime,
    recognised: Recognised | None = None,
) -> AccountManagerReply | None:
    """Settle and store the request's totals and the answer; None if another request of the host was faster."""
    is_same = description_digest(request) == account.hardware_digest
    described = None if is_same else describe(request)
    if described is not None:
        account.platform = described.columns["platform_name"]
        if "coprocs" in described.columns:
            account.device_types = device_types(described.columns["coprocs"])
    machine = described.machine if described is not None else None
    attachments = attachments_of(request, account, listed, projects)
    reports = _reports(account, listed, attachments)
    settlement = _settle(request, account, reports, machine, store.to_us(now), recognised, projects.usual)
    troubles = {
        id_: note_troubles(p.no_work, p.nrpc_failures, p.ended, account.troubles.get(id_, (None,))[0], now)
        for id_, p in listed.items()
    }
    shares = instructions.choose_for(account, listed, troubles, projects, now)
    # A project that the client has under an address not yet known for it must not be attached a second time.
    shares = {id_: share for id_, share in shares.items() if id_ not in attachments.elsewhere}
    after = account.projects if settlement.stale else _rows_after(account, settlement, listed, shares)
    is_first = recognised is not None and recognised.is_new
    facts = instructions.ReplyFacts(settlement, after, listed, shares, projects, is_first, attachments)
    reply = instructions.reply_to(request, account, facts, now=now)
    if settlement.stale:
        return reply
    rows = [row for id_, row in after.items() if id_ in listed or row is not account.projects.get(id_)]
    offered = [projects.at(entry.url) for entry in reply.accounts]
    ids = [project.id if project is not None else None for project in offered]
    written = await writes.Write(
        account,
        settlement,
        rows,
        {id_: _state(id_, project, troubles[id_], facts, account, now) for id_, project in listed.items()},
        now,
        request.contact() | attachments.for_contact(),
        contact_log.summarise(request, reply, ids, troubles),
        described,
        _tasks(request.tasks, projects) if instructions.takes_tasks(account) else None,
    )
    return reply if written else None


def _reports(account: store.Account, listed: Listed, attachments: Attachments) -> list[Report]:
    """Return the ledger's report on each project. One that the client has under an unknown address continues without
    totals: they will count from their present values.
    """
    reports = [Report(id_, project.totals, project.fault, project.unreadable) for id_, project in listed.items()]
    rows = account.projects
    return reports + [Report(id_, None) for id_ in attachments.elsewhere if id_ in rows and rows[id_].listed]


def _settle(
    request: AccountManagerRequest,
    account: store.Account,
    reports: list[Report],
    machine: Machine | None,
    now_us: int,
    recognised: Recognised | None,
    usual: Usual,
) -> LedgerChanges:
    """Compute what the totals change; ``machine``: the hardware, if the request describes it differently than
    before.
    """
    if recognised is not None and recognised.is_late:
        return LedgerChanges(True, account.state)
    own_last_at = recognised.own_last_at if recognised is not None else None
    return settle(
        account.state,
        account.projects,
        reports,
        now_us=now_us,
        client_now=request.client_now,
        old=account.machine,
        new=machine,
        is_same_client=_is_same_client(request, account, recognised),
        own_last_at_us=store.to_us(own_last_at) if own_last_at is not None else None,
        honours_handed=request.version_tuple >= instructions.HONOURS_HANDED_SINCE,
        ceilings=_ceilings(),
        usual=usual,
    )


def _is_same_client(request: AccountManagerRequest, account: store.Account, recognised: Recognised | None) -> bool:
    """Whether the stored totals are this client's: it sends the record's id or former number, or none of these and the
    record's CPID.

    A record may be found by the computer's name alone. Then its totals are another client's.
    """
    if recognised is not None and recognised.goes_on:
        return True
    if request.host_number is not None and recognised is not None:
        return recognised.host.former_number == request.host_number
    if request.host_token is not None:
        return request.host_token == account.token
    return account.cpid != "" and account.cpid in (request.host_cpid, request.previous_host_cpid)


def _rows_after(
    account: store.Account, settlement: LedgerChanges, listed: Listed, shares: dict[int, float]
) -> dict[int, Any]:
    """Return the host's rows after this request, including projects that the reply offers and the request did not
    list.
    """
    after = dict(account.projects)
    for row in settlement.changed:
        after[row.project_id] = row
    for id_ in shares:
        if id_ not in listed and not (id_ in account.wishes and account.wishes[id_].excluded):
            after[id_] = offer(after.get(id_), id_)
    return after


def _listed(request: AccountManagerRequest, projects: catalogue.Catalogue) -> Listed:
    """Return the request's known projects, by id. If a project comes twice, the one at its master URL counts, else the
    first.

    A client may have one twice if it attached to it at two addresses; each has its own totals.
    """
    listed: dict[int, ReportedProject] = {}
    for reported in request.projects:
        project = projects.at(reported.url)
        if project is None:
            continue
        other = listed.setdefault(project.id, reported)
        if address_key(other.url) != project.key == address_key(reported.url):
            listed[project.id] = reported
    return listed


def _state(
    id_: int,
    project: ReportedProject,
    troubles: StoredTroubles,
    facts: instructions.ReplyFacts,
    account: store.Account,
    now: dt.datetime,
) -> dict[str, Any]:
    """Build the client's report about a project, for the owner's pages and the next reply."""
    return _own_key(id_, project, facts, account) | {
        "at": int(now.timestamp()),
        "troubles": troubles,
        "no_work": list(project.no_work),
        "failures": project.nrpc_failures,
        "queued_secs": int(project.not_started_dur),
        "running_secs": int(project.in_progress_dur),
        "share": project.resource_share,
        "suspended": project.suspended_via_gui,
        "no_new_work": project.dont_request_more_work,
        "ended": project.ended,
        "faulty": bool(project.fault or project.unreadable),
        "by_owner": id_ in facts.attachments.by_owner,
        "unsummed": [account.summed_at.get(id_), account.unsummed(id_, facts.settlement)],
        "hostid": project.hostid,
    }


def _own_key(
    id_: int, reported: ReportedProject, facts: instructions.ReplyFacts, account: store.Account
) -> dict[str, Any]:
    """Return the sealed key of the owner's own account, which they may take over for all their computers."""
    project = facts.projects.by_id[id_]
    key = reported.account_key
    if not project.per_user or project.is_own or not _WHOLE_KEY.fullmatch(key) or key == account_key(account, project):
        return {}
    if not project.may_get_key(reported.url):
        return {}
    return {"own_key": account_keys.seal_reported(account.host_id, id_, project.url, key)}


def _tasks(reported: ReportedTasks | None, projects: catalogue.Catalogue) -> writes.StoredTaskList | None:
    """Return the list to store: tasks of projects that this site knows. Others are none of its business, and only
    counted.
    """
    if reported is None:
        return None
    tasks, seen = [], set()
    for task in reported.tasks:
        project = projects.at(task.url)
        if project is None or (project.id, task.name) in seen:
            continue
        seen.add((project.id, task.name))
        tasks.append(
            {
                "project": project.id,
                "name": task.name,
                "state": task.state,
                "fraction_done": task.fraction_done,
                "deadline": task.deadline,
                "elapsed_secs": task.elapsed_secs,
                "remaining_secs": task.remaining_secs,
            }
        )
    left_out = reported.left_out + len(reported.tasks) - len(tasks)
    return writes.StoredTaskList(orjson.dumps(tasks).decode(), left_out)


def _is_key_use_new(account: store.Account, now: dt.datetime) -> bool:
    """Whether to note the use of the key: once a day is enough for the owner's list of keys, and saves writes."""
    return account.key_used_at is None or now - account.key_used_at > KEY_USE_NOTED_EVERY


@cached_setting
def _ceilings() -> Ceilings:
    return Ceilings(
        settings.AM_MAX_NCPUS, int(settings.AM_MAX_CPU_FLOPS), settings.AM_MAX_GPUS, int(settings.AM_MAX_GPU_FLOPS)
    )
