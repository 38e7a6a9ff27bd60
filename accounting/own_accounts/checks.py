"""Workers' jobs for own accounts: ask the project once for a volunteer, and check weekly that the key still works.

Projects are asked by the site's one fetcher, outside any transaction.
"""

from __future__ import annotations

import datetime as dt
import random
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext_lazy as _

from accounting.engine.amounts import MICRO
from accounting.engine.own_accounts import state_of_refusal
from accounting.models import OwnAccount, UserProject
from accounting.own_accounts.requests import OUTCOME_STANDS, REQUEST_KEPT, TASK, AccountRequest, expire, take
from accounting.project_setup import accounts
from accounting.project_setup.accounts import WEAK, AccountProblem
from accounting.rpc import account_keys
from accounting.wire.project_replies import AccountInfo
from portal.celery import send_if_possible
from portal.fetch.errors import AddressRefused
from portal.languages.messages import Message
from portal.people.key_mails import send_words

log = structlog.get_logger("projects")

CHECKED_EVERY: Final = dt.timedelta(days=7)
CHECKS_PER_RUN: Final = 200
CHECKS_OF_PROJECT: Final = 5
"""Accounts checked in a run: each may take as long as a slow project."""
UNREACHABLE_FOR: Final = dt.timedelta(hours=1)
_RETOLD_AFTER: Final = dt.timedelta(minutes=1)
State = OwnAccount.State
_TOLD: Final = (State.ASKING, State.KEY_REFUSED)
"""States in which the volunteer waits for an answer, or has been notified of an invalid key."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A project's answer about an account. ``key``: the one to store; empty: it gave none."""

    state: State
    key: str = ""
    reason: Message | None = None
    info: AccountInfo | None = None
    can_check: bool = False
    credit: tuple[float, float] | None = None


def carry_out(account_id: int, now: dt.datetime) -> None:
    """Do what a volunteer asked for. Safe to repeat: a request is taken once."""
    taken = take(account_id, now)
    if taken is None:
        return
    account, request = taken
    _note(account, _find(account, request), now)


def check(account_id: int, now: dt.datetime) -> None:
    """Check whether the stored key still works, and read what the project granted. Safe to repeat."""
    account = OwnAccount.objects.select_related("project__profile", "user").filter(pk=account_id).first()
    if account is None or account.state == State.ASKING:
        return
    stored = UserProject.objects.filter(user=account.user_id, project=account.project_id).first()
    if stored is None or not stored.account_key:
        return
    try:
        key = account_keys.own(
            account.user_id, account.project_id, account.project.master_url, bytes(stored.account_key)
        )
    except account_keys.UnreadableAccountKey:
        return
    try:
        if account.can_check:
            finding = _described(account, key)
        else:
            # Unless another key was entered meanwhile
            state = State.WORKS if account.state == State.WORKS else State.UNCHECKED
            finding = Finding(state, credit=accounts.account_credit(account.project, account.number))
    except AccountProblem:
        finding = Finding(State.UNREACHABLE)
    if finding.state == State.UNREACHABLE:
        # A project that is down for an hour has forgotten nobody. Nor is it asked for all others meanwhile.
        soon = now + UNREACHABLE_FOR
        waiting = OwnAccount.objects.filter(project=account.project_id).exclude(state=State.ASKING)
        waiting.filter(Q(check_after__lt=soon) | Q(pk=account.pk)).update(check_after=soon)
        return
    _note(account, finding, now)


def look_after(now: dt.datetime) -> list[int]:
    """Forget requests that are too old, resend messages for waiting ones, and return the accounts to check.

    These are not due again for a week. Locks their rows; runs may overlap.
    """
    expire(now)
    waiting = OwnAccount.objects.filter(asked_at__range=(now - REQUEST_KEPT, now - _RETOLD_AFTER))
    for account_id in waiting.exclude(sealed_request=None).values_list("pk", flat=True):
        send_if_possible(TASK, account_id)
    with transaction.atomic():
        all_due = OwnAccount.objects.filter(check_after__lte=now).exclude(state=State.ASKING)
        place = Window(RowNumber(), partition_by="project", order_by="check_after")
        first = all_due.annotate(place=place).filter(place__lte=CHECKS_OF_PROJECT).order_by("check_after")
        chosen = list(first.values_list("pk", flat=True)[:CHECKS_PER_RUN])
        due = list(all_due.filter(pk__in=chosen).select_for_update(skip_locked=True))
        for account in due:
            account.check_after = _next_check(now)
            account.save(update_fields=["check_after"])
    return [account.pk for account in due]


def _find(account: OwnAccount, request: AccountRequest) -> Finding:
    project = account.project
    try:
        if request.key:
            return _described(account, request.key)
        if request.name:
            key = accounts.create_account(
                project, request.login, request.passwd_hash, request.name, has_consented=request.has_consented
            )
        else:
            key = accounts.find_key(project, request.login, request.passwd_hash)
    except AccountProblem as error:
        return _refusal(error, request.passwd_hash, is_key=False)
    return _described(account, key, is_given=True)


def _described(account: OwnAccount, key: str, *, is_given: bool = False) -> Finding:
    """Read the project's description of the account with this key; ``is_given``: the project has just given the key, so
    it works.

    Stores the account's weak key, if there is one: the full one could change the account, and volunteers' computers
    will get it.
    """
    try:
        info = accounts.account_info(account.project, key)
    except AccountProblem as error:
        if is_given:
            return Finding(State.WORKS, key)
        finding = _refusal(error, key, is_key=True)
        # Some projects describe accounts by their full keys only, and have never described this one.
        is_untold = finding.state == State.KEY_REFUSED and WEAK in key and not account.can_check
        return Finding(State.UNCHECKED, key) if error.is_not_there or is_untold else finding
    can_check = True
    if info.weak_key and WEAK not in key:
        key = info.weak_key
        try:
            accounts.account_info(account.project, key)
        except AccountProblem as error:
            can_check = error.is_unreachable
    return Finding(State.WORKS, key, info=info, can_check=can_check, credit=_credit(account, info.id))


def _refusal(error: AccountProblem, secret: str, *, is_key: bool) -> Finding:
    """Return the reason shown to volunteers, without the secret, which the project may repeat, and without internal
    addresses.
    """
    is_inside = isinstance(error.__cause__, AddressRefused)
    reason = None if is_inside else accounts.without(error.message, secret)
    return Finding(State(state_of_refusal(error.error_num, is_key=is_key)), reason=reason)


def _credit(account: OwnAccount, number: int) -> tuple[float, float] | None:
    with suppress(AccountProblem):
        return accounts.account_credit(account.project, number)
    return None


def _note(asked: OwnAccount, finding: Finding, now: dt.datetime) -> None:
    """Store a finding, unless something else was requested meanwhile, or the account was removed.

    Locks the volunteer and the project, as erasure and removal do first; then the volunteer's row of the project and
    that of the account.
    """
    with transaction.atomic():
        same = OwnAccount.objects.filter(pk=asked.pk, asked_at=asked.asked_at)
        # From here on neither can be deleted: a row that names them would fail at the end.
        if not same.select_related("user", "project").select_for_update(no_key=True, of=("user", "project")).first():
            return
        choice, _created = UserProject.objects.select_for_update(no_key=True).get_or_create(
            user_id=asked.user_id, project_id=asked.project_id
        )
        account = same.select_for_update().first()
        if account is None:
            return
        if finding.key:
            choice.account_key = account_keys.seal_own(account.user_id, asked.project, finding.key)
            choice.save(update_fields=["account_key"])
            account.can_check = finding.can_check
        if finding.state != account.state:
            account.state_at = now
        is_broken = finding.state == State.KEY_REFUSED and account.state not in _TOLD
        is_refused = asked.state == State.ASKING and not finding.key
        account.state, account.reason = finding.state, finding.reason
        account.check_after = now + OUTCOME_STANDS if is_refused else _next_check(now)
        if finding.info is not None:
            account.number, account.name = finding.info.id, finding.info.name
        if finding.credit is not None:
            account.total_credit, account.avg_credit = int(finding.credit[0] * MICRO), finding.credit[1]
            account.credit_at = now
        account.save()
        if is_broken:
            transaction.on_commit(lambda: _tell(asked))
    log.info("own_account_asked", project=asked.project_id, user=asked.user_id, state=str(finding.state))


def _tell(account: OwnAccount) -> None:
    """Write to the volunteer whose computers can no longer work for the project."""
    words = {
        "name": account.user.display_name,
        "project": account.project.name,
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "project_id": account.project_id,
    }
    send_words(account.user, _("The key of an account at a project is not valid any more"), "own_account", words)


def _next_check(now: dt.datetime) -> dt.datetime:
    # Spread, so that not all are due on the same day
    return now + CHECKED_EVERY * random.uniform(0.9, 1.1)
