"""Volunteers' requests for an account at a project: each waits sealed in its row until a worker asks the project.

No password is stored: BOINC's projects take a hash of password and address, and this is sealed to its row and to the
project's server until a worker takes it, for `REQUEST_KEPT` at most. Messages to workers contain the row's number only.
"""

from __future__ import annotations

import datetime as dt
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounting.models import HostProject, OwnAccount, Project, UserProject
from accounting.rpc import account_keys
from portal.celery import send_if_possible
from portal.models import User
from portal.wire import sealing

TASK: Final = "accounting.tasks.ask_for_account"
REQUEST_KEPT: Final = dt.timedelta(minutes=10)
OUTCOME_STANDS: Final = dt.timedelta(hours=1)
"""How long the account's state shows the result of an entry that changed nothing; afterwards it is that of the stored
key."""
State = OwnAccount.State


@dataclass(frozen=True, slots=True)
class AccountRequest:
    """Either ``key``, or a login in lower case with the hash of its password; with ``name``, the account is created.

    ``has_consented``: to the project's terms of use.
    """

    key: str = ""
    login: str = ""
    passwd_hash: str = ""
    name: str = ""
    has_consented: bool = False


def ask(user: User, project: Project, request: AccountRequest) -> None:
    """Have a worker ask the project. A waiting request is replaced. Locks the row of the account."""
    now = timezone.now()
    with transaction.atomic():
        OwnAccount.objects.get_or_create(
            user=user, project=project, defaults={"state": State.ASKING, "state_at": now, "check_after": now}
        )
        account = OwnAccount.objects.select_for_update().get(user=user, project=project)
        account.state, account.state_at, account.asked_at, account.reason = State.ASKING, now, now, None
        account.sealed_request = sealing.seal(
            settings.ACCOUNT_KEY_SECRET, _place(account, project), json.dumps(asdict(request))
        )
        account.save()
        transaction.on_commit(partial(send_if_possible, TASK, account.pk))


def take(account_id: int, now: dt.datetime) -> tuple[OwnAccount, AccountRequest] | None:
    """Take the waiting request, which is stored nowhere from then on. None if there is none, or it has expired.

    Locks the row of the account.
    """
    with transaction.atomic():
        rows = OwnAccount.objects.select_for_update(of=("self",)).select_related("project__profile", "user")
        account = rows.filter(pk=account_id).exclude(sealed_request=None).first()
        if account is None:
            return None
        sealed, account.sealed_request = bytes(account.sealed_request or b""), None
        request = None
        if account.asked_at is not None and now - account.asked_at < REQUEST_KEPT:
            with suppress(sealing.UnsealableError):
                place = _place(account, account.project)
                request = AccountRequest(**json.loads(sealing.unseal(settings.ACCOUNT_KEY_SECRET, place, sealed)))
        if request is None:
            account.state, account.state_at, account.check_after = State.EXPIRED, now, now + OUTCOME_STANDS
        account.save()
    return None if request is None else (account, request)


def expire(now: dt.datetime) -> None:
    """Forget requests that no worker took in time, or whose worker was lost."""
    over = OwnAccount.objects.filter(state=State.ASKING, asked_at__lte=now - REQUEST_KEPT)
    over.update(sealed_request=None, state=State.EXPIRED, state_at=now, check_after=now + OUTCOME_STANDS)


def reported_keys(user: User, project: Project) -> list[HostProject]:
    """Read the computers whose clients have the project with their owner's own account, with the sealed key."""
    rows = HostProject.objects.filter(host__owner=user, host__merged_into=None, project=project, listed=True)
    return list(rows.filter(state__has_key="own_key").select_related("host"))


def reported_key(user: User, project: Project, host_id: int) -> str | None:
    """Return this computer's client's key; None if there is none that can be read."""
    row = next((row for row in reported_keys(user, project) if row.host_id == host_id), None)
    with suppress(account_keys.UnreadableAccountKey):
        return account_keys.reported(row.host_id, project, row.state["own_key"]) if row is not None else None
    return None


def remove(user: User, project: Project) -> None:
    """Forget the key and everything known about the account. Computers keep the project until their tasks are done.

    Locks the volunteer's row of the project, then that of the account.
    """
    with transaction.atomic():
        UserProject.objects.filter(user=user, project=project).update(account_key=None)
        OwnAccount.objects.filter(user=user, project=project).delete()


def _place(account: OwnAccount, project: Project) -> sealing.Place:
    return "ownaccount", account.user_id, project.pk, "sealed_request", sealing.origin(project.master_url)
