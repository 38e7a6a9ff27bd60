"""Make a copy of everything stored about a volunteer: a zip of JSON files, with the history as CSV.

A worker does this. Secrets and their hashes are left out.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from typing import IO, Any, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import CASCADE, ForeignKey, Model, Q, QuerySet
from django.utils import timezone

from accounting.exchange import made_files
from accounting.exchange.day_rows import PAGE_ROWS, read_names
from accounting.exchange.downloads import as_csv
from accounting.models import (
    AccountSettings,
    AccountTotal,
    Answer,
    DataCopy,
    FollowedTask,
    GrantedDay,
    GrantedTotal,
    HostClient,
    HostLedger,
    HostProject,
    Note,
    OwnAccount,
    Settlement,
    TaskList,
    UserProject,
)
from portal.extras import CopiedFile, SiteApp, site_apps
from portal.languages.messages import Message
from portal.models import (
    ApiToken,
    ClientKey,
    ConsentEvent,
    Host,
    HostLimitRequest,
    JoinToken,
    MailChoice,
    RequestedWork,
    SecurityEvent,
    SentMail,
    User,
    WaitingMail,
)
from portal.requested_work import queue
from portal.requested_work.queue import Standing
from portal.sign_in.sessions import signed_in_browsers

KIND: Final = "data copy"
"""The kind of requested work."""
_SECRET: Final = {
    "password",
    "client_password",
    "next_client_password",
    "token",
    "key_hash",
    "token_hash",
    "account_key",
    "share_token",
}
# This app imports none of these; it finds their tables by name.
_OTHER_APPS: Final = ("credit", "scheduler", "emulator")
_README: Final = """Everything that {site} stores about you, as of {now:%Y-%m-%d %H:%M} UTC.

history.csv         what each computer did for each project, day by day (UTC)
account.json        your account, with e-mail addresses, preferences, keywords, and what was sent to you
computers.json      your computers as described by their clients
contacts.json       when each computer last synced, and what its client reported about itself
other_clients.json  clients that reported with the id of one of your computers under another cross-project id
answers.json        the replies sent to each computer
totals.json         the ledger: totals per computer and project, in 1e-6 credits, 1e-6 seconds, and tasks
granted.json        what the projects’ exports say about your computers and accounts, in 1e-6 credits
projects.json       your choice of projects, and your accounts there
consents.json       what you agreed to and withdrew, when, and which version of the text you were shown
notes.json          notes about reports
tasks.json          the tasks that your computers last listed, and what became of earlier ones
access.json         client keys, API tokens, two-factor devices and sessions
{files}{others}
Passwords, keys and tokens are stored as hashes or encrypted, and are not included.
"""


def ask_copy(user: User) -> tuple[DataCopy, bool]:
    """Return the user's unfinished copy, or queue a new one; also whether it is new."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        last = _copies(user).first()
        if last is not None and made_files.standing(KIND, last) is not None:
            return last, False
        _copies(user).delete()
        copy = DataCopy.objects.create(user=user, asked_at=timezone.now())
        queue.ask(user.pk, KIND, [copy.pk])
        return copy, True


def read_copy(user: User) -> tuple[DataCopy | None, Standing | None]:
    """Return the user's copy and, while it is unfinished, its progress. An abandoned one is shown as failed."""
    copies = made_files.with_standings(KIND, _copies(user)[:1])
    return copies[0] if copies else (None, None)


def find_ready(user: User, pk: int) -> DataCopy | None:
    """Return a copy of this user's that can be downloaded."""
    return _copies(user).filter(pk=pk, state=DataCopy.State.READY).first()


def make_copy(copy_id: int) -> None:
    """Make a requested copy; safe to run twice."""
    made_files.make(copy_id, write)


def _copies(user: User) -> QuerySet[DataCopy]:
    return DataCopy.objects.filter(user=user, content=DataCopy.Content.ALL)


def write(copy: DataCopy, target: IO[bytes]) -> None:
    """Write the zip of everything stored about a person."""
    user = copy.user
    site = settings.SITE_NAME
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        others = list(_of_other_apps(user))
        lines = "".join(f"{name}    {rows.model._meta.verbose_name_plural}\n" for name, rows in others)
        about = "".join(f"{file.name:<19} {file.about}\n" for file in _files_of_apps(user))
        archive.writestr("README.txt", _README.format(site=site, now=timezone.now(), files=about, others=lines))
        for name, content in documents(user):
            archive.writestr(name, json.dumps(content, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1))
        for name, rows in others:
            with archive.open(name, "w", force_zip64=True) as rows_file:
                _write_rows(rows_file, rows)
        with archive.open("history.csv", "w", force_zip64=True) as history:
            for chunk in as_csv(made_files.counted_pages(copy), read_names(user)):
                history.write(chunk)


def documents(user: User) -> Iterator[tuple[str, object]]:
    """Return the JSON files, by name."""
    yield (
        "account.json",
        {
            "account": _rows(User.objects.filter(pk=user.pk))[0],
            "email_addresses": _rows(EmailAddress.objects.filter(user=user)),
            "settings": _rows(AccountSettings.objects.filter(user=user)),
            "mails": _rows(MailChoice.objects.filter(user=user)),
            "sent_mails": _rows(SentMail.objects.filter(user=user).order_by("pk")),
            "waiting_mails": _rows(WaitingMail.objects.filter(user=user).order_by("pk")),
            "requested_work": _rows(RequestedWork.objects.filter(user=user).order_by("pk")),
        },
    )
    yield "computers.json", _rows(Host.objects.filter(owner=user).order_by("pk"))
    yield "contacts.json", _rows(HostLedger.objects.filter(host__owner=user).order_by("pk"))
    yield "other_clients.json", _rows(HostClient.objects.filter(host__owner=user).order_by("pk"))
    yield "answers.json", _rows(Answer.objects.filter(host__owner=user).order_by("host_id", "at"))
    totals = _rows(HostProject.objects.filter(host__owner=user).order_by("host_id", "project_id"))
    for row in totals:
        row["state"].pop("own_key", None)
    yield "totals.json", totals
    yield (
        "granted.json",
        {
            "computers": _rows(GrantedTotal.objects.filter(host__owner=user).order_by("pk")),
            "days": _rows(GrantedDay.objects.filter(user=user).order_by("day", "project_id", "host_id")),
            "accounts": _rows(AccountTotal.objects.filter(user=user).order_by("pk")),
            "settled": _rows(Settlement.objects.filter(host__owner=user).order_by("pk")),
        },
    )
    yield (
        "projects.json",
        {
            "choices": _rows(UserProject.objects.filter(user=user).order_by("project_id")),
            "accounts": _rows(OwnAccount.objects.filter(user=user).order_by("project_id")),
        },
    )
    yield "consents.json", _rows(ConsentEvent.objects.filter(user=user).order_by("pk"))
    yield "notes.json", _rows(Note.objects.filter(host__owner=user).order_by("pk"))
    yield (
        "tasks.json",
        {
            "listed": _rows(TaskList.objects.filter(host__owner=user).order_by("pk")),
            "followed": _rows(FollowedTask.objects.filter(host__owner=user).order_by("pk")),
        },
    )
    yield (
        "access.json",
        {
            "client_keys": _rows(ClientKey.objects.filter(user=user)),
            "api_tokens": _rows(ApiToken.objects.filter(user=user)),
            "join_tokens": _rows(JoinToken.objects.filter(user=user)),
            "host_limit_requests": _rows(HostLimitRequest.objects.filter(user=user), "decided_by"),
            "two_factor": _rows(Authenticator.objects.filter(user=user), "data"),
            "sessions": [
                {"at": browser.at, "ip": browser.address, "user_agent": browser.user_agent}
                for browser in signed_in_browsers(user)
            ],
            "security_events": _rows(SecurityEvent.objects.filter(user=user).order_by("pk")),
        },
    )
    for file in _files_of_apps(user):
        yield file.name, {key: _rows(rows) for key, rows in file.rows.items()}


def _files_of_apps(user: User) -> list[CopiedFile]:
    return [file for app in site_apps() for file in app.copied_files(user)]


def _of_other_apps(user: User) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Return the rows of the site's other apps, and of extras that name no files of their own: every row that points to
    the user or to one of their computers, with its parts.
    """
    for app in site_apps():
        if app.label not in _OTHER_APPS and not (app.is_extra and type(app).copied_files is SiteApp.copied_files):
            continue
        for model in app.get_models():
            if theirs := _theirs(model, user) or _parts_of_theirs(model, user):
                yield f"{app.label}/{model._meta.model_name}.json", model._default_manager.filter(theirs).order_by("pk")


def _theirs(model: type[Model], user: User, by: str = "") -> Q:
    """Return the condition on rows that point to the user or their computers; ``by``: the path to the model."""
    theirs = Q()
    for field in model._meta.concrete_fields:
        if field.related_model is User:
            theirs |= Q(**{f"{by}{field.name}": user})
        elif field.related_model is Host:
            theirs |= Q(**{f"{by}{field.name}__owner": user})
    return theirs


def _parts_of_theirs(model: type[Model], user: User) -> Q:
    """Select the rows that belong to a row of the same app that points to the user."""
    theirs = Q()
    for field in model._meta.concrete_fields:
        if not isinstance(field, ForeignKey) or field.remote_field.on_delete is not CASCADE:
            continue
        whole = field.related_model
        if isinstance(whole, type) and whole._meta.app_label == model._meta.app_label:
            theirs |= _theirs(whole, user, f"{field.name}__")
    return theirs


def _write_rows(file: IO[bytes], rows: QuerySet[Any]) -> None:
    """Write a list of rows one at a time, as there may be very many."""
    separator = "[\n"
    for row in rows.iterator(chunk_size=PAGE_ROWS):
        text = json.dumps(_row(row, ()), cls=DjangoJSONEncoder, ensure_ascii=False)
        file.write(f"{separator}{text}".encode())
        separator = ",\n"
    file.write(b"\n]\n" if separator != "[\n" else b"[]\n")


def _rows(rows: QuerySet[Any], *left_out: str) -> list[dict[str, Any]]:
    """Return all columns of the rows except secrets and bytes."""
    return [_row(row, left_out) for row in rows]


def _row(row: Model, left_out: tuple[str, ...]) -> dict[str, Any]:
    fields = [field for field in row._meta.concrete_fields if field.name not in _SECRET and field.name not in left_out]
    values = {field.attname: _readable(field.value_from_object(row)) for field in fields}
    return {name: value for name, value in values.items() if not isinstance(value, bytes | memoryview | tuple)}


def _readable(value: Any) -> Any:
    """Return a message as its English sentence."""
    if isinstance(value, list):
        return [_readable(item) for item in value]
    return str(value) if isinstance(value, Message) else value
