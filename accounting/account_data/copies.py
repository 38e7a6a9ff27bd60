"""A copy of everything that is held about a volunteer: a zip of JSON files, with the history as CSV.

A worker makes it and notes its progress in the row. Secrets and their hashes are left out.
"""

from __future__ import annotations

import datetime as dt
import json
import tempfile
import zipfile
from collections.abc import Iterator
from typing import IO, Any, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import CASCADE, ForeignKey, Model, Q, QuerySet
from django.utils import timezone

from accounting.exchange.day_rows import PAGE_ROWS, DayRange, DayRow, close_connection, read_names, read_pages
from accounting.exchange.downloads import as_csv
from accounting.models import (
    AccountSettings,
    Answer,
    DataCopy,
    DataCopyPart,
    Day,
    HostClient,
    HostLedger,
    HostProject,
    Note,
    UserProject,
)
from portal.models import ApiToken, ClientKey, Host, MailChoice, RequestedWork, SecurityEvent, SentMail, User
from portal.requested_work import queue
from portal.requested_work.queue import Standing

KEPT: Final = dt.timedelta(days=7)
KIND: Final = "data copy"
"""The kind of requested work."""
PART_BYTES: Final = 1 << 20
_UNFINISHED: Final = (DataCopy.State.WAITING, DataCopy.State.WORKING)
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
# This app imports none of these; their tables are found by name.
_OTHER_APPS: Final = ("credit", "scheduler", "emulator")
_README: Final = """Everything that {site} holds about you, as of {now:%Y-%m-%d %H:%M} UTC.

history.csv         what each computer did for each project, day by day (UTC)
account.json        your account, with e-mail addresses, preferences, keywords, and what was sent to you
computers.json      your computers as they described themselves
contacts.json       when each computer last reported, and what its client said of itself
other_clients.json  clients that reported with the id of one of your computers under another cross-project id
answers.json        what each computer was answered
totals.json         the ledger: totals per computer and project, in 1e-6 credits, 1e-6 seconds, and jobs
projects.json       your choice of projects
notes.json          notes on reports
access.json         client keys, API tokens, two-factor devices and sessions
{others}
Passwords, keys and tokens are kept as hashes or encrypted, and are left out.
"""


def ask_copy(user: User) -> tuple[DataCopy, bool]:
    """The copy that is being made for the user, or a new one, which is queued; and whether it is new."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        last = DataCopy.objects.filter(user=user).first()
        if last is not None and standing(last) is not None:
            return last, False
        DataCopy.objects.filter(user=user).delete()
        copy = DataCopy.objects.create(user=user)
        queue.ask(user.pk, KIND, [copy.pk])
        return copy, True


def standing(copy: DataCopy) -> Standing | None:
    """Where a copy that is not finished stands; None if it is, or if it was given up."""
    if copy.state not in _UNFINISHED:
        return None
    return queue.standings(KIND, [copy.pk], timezone.now()).get(copy.pk)


def read_copy(user: User) -> tuple[DataCopy | None, Standing | None]:
    """The user's copy and, while it is not finished, where it stands. One that was given up is shown as failed."""
    copy = DataCopy.objects.filter(user=user).first()
    if copy is None:
        return None, None
    found = standing(copy)
    if found is not None or copy.state not in _UNFINISHED:
        return copy, found
    # It may have been finished between the two statements.
    copy.refresh_from_db(fields=["state", "percent", "size_bytes", "finished_at"])
    if copy.state in _UNFINISHED:
        copy.state = DataCopy.State.FAILED
    return copy, None


def make_copy(copy_id: int) -> None:
    """Make a copy that was asked for; safe to run twice. One that is ready, or gone, is left alone."""
    copy = DataCopy.objects.select_related("user").filter(pk=copy_id).exclude(state=DataCopy.State.READY).first()
    if copy is None:
        return
    DataCopy.objects.filter(pk=copy_id).update(state=DataCopy.State.WORKING, percent=0)
    try:
        with tempfile.TemporaryFile() as file:
            _write(copy, file, settings.SITE_NAME)
            _store(copy, file)
    except Exception:
        # Of whatever kind: the owner is told that it failed, and the error goes on to the task's log.
        DataCopy.objects.filter(pk=copy_id).update(state=DataCopy.State.FAILED, finished_at=timezone.now())
        raise


def read_parts(copy: DataCopy) -> Iterator[bytes]:
    """The file of a copy that is ready, piece by piece."""
    number = 0
    while (part := DataCopyPart.objects.filter(copy=copy, number=number).first()) is not None:
        close_connection()
        yield bytes(part.content)
        number += 1


def look_after(now: dt.datetime) -> None:
    """Note which copies the queue gave up, and queue those that are not over but not in the queue. Safe to repeat.

    The latter waited, or were being made, when a version of this site without the queue was stopped. A worker that is
    killed leaves its copy in the queue, which hands it out again (`queue.look_after`).
    """
    unfinished = DataCopy.objects.filter(state__in=_UNFINISHED)
    given_up = RequestedWork.objects.filter(kind=KIND, is_given_up=True).values("subject")
    unfinished.filter(pk__in=given_up).update(state=DataCopy.State.FAILED, finished_at=now)
    queue.ask_missing(KIND, unfinished, "user")


def remove_old_copies(now: dt.datetime) -> int:
    """Remove what has been there for a week; how many copies."""
    old = DataCopy.objects.filter(asked_at__lt=now - KEPT)
    number = old.count()
    old.delete()
    return number


def _write(copy: DataCopy, file: IO[bytes], site: str) -> None:
    user = copy.user
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        others = list(_of_other_apps(user))
        lines = "".join(f"{name}    {found.model._meta.verbose_name_plural}\n" for name, found in others)
        archive.writestr("README.txt", _README.format(site=site, now=timezone.now(), others=lines))
        for name, content in _documents(user):
            archive.writestr(name, json.dumps(content, cls=DjangoJSONEncoder, ensure_ascii=False, indent=1))
        for name, found in others:
            with archive.open(name, "w", force_zip64=True) as rows_file:
                _write_rows(rows_file, found)
        with archive.open("history.csv", "w", force_zip64=True) as history:
            for chunk in as_csv(counted_pages(copy), read_names(user)):
                history.write(chunk)


def counted_pages(copy: DataCopy, page_rows: int = PAGE_ROWS) -> Iterator[list[DayRow]]:
    """The pages of the history; how much is done goes into the copy's row."""
    total = Day.objects.filter(user=copy.user).count()
    done = shown = 0
    for page in read_pages(copy.user, DayRange(dt.date.min, dt.date.max), page_rows):
        yield page
        done += len(page)
        percent = min(99, 100 * done // max(total, 1))
        if percent > shown:
            shown = percent
            DataCopy.objects.filter(pk=copy.pk).update(percent=percent)


def _store(copy: DataCopy, file: IO[bytes]) -> None:
    size = file.tell()
    file.seek(0)
    with transaction.atomic():
        # Locked, so that only one of two runs stores its file, and none for an account that was deleted.
        current = DataCopy.objects.select_for_update().filter(pk=copy.pk).first()
        if current is None or current.state == DataCopy.State.READY:
            return
        DataCopyPart.objects.filter(copy=copy).delete()
        for number, content in enumerate(iter(lambda: file.read(PART_BYTES), b"")):
            DataCopyPart.objects.create(copy=copy, number=number, content=content)
        current.state, current.percent = DataCopy.State.READY, 100
        current.size_bytes, current.finished_at = size, timezone.now()
        current.save(update_fields=["state", "percent", "size_bytes", "finished_at"])


def _documents(user: User) -> Iterator[tuple[str, object]]:
    """The JSON files, by name."""
    yield (
        "account.json",
        {
            "account": _rows(User.objects.filter(pk=user.pk))[0],
            "email_addresses": _rows(EmailAddress.objects.filter(user=user)),
            "settings": _rows(AccountSettings.objects.filter(user=user)),
            "mails": _rows(MailChoice.objects.filter(user=user)),
            "sent_mails": _rows(SentMail.objects.filter(user=user).order_by("pk")),
            "requested_work": _rows(RequestedWork.objects.filter(user=user).order_by("pk")),
        },
    )
    yield "computers.json", _rows(Host.objects.filter(owner=user).order_by("pk"))
    yield "contacts.json", _rows(HostLedger.objects.filter(host__owner=user).order_by("pk"))
    yield "other_clients.json", _rows(HostClient.objects.filter(host__owner=user).order_by("pk"))
    yield "answers.json", _rows(Answer.objects.filter(host__owner=user).order_by("host_id", "at"))
    yield "totals.json", _rows(HostProject.objects.filter(host__owner=user).order_by("host_id", "project_id"))
    yield "projects.json", _rows(UserProject.objects.filter(user=user).order_by("project_id"))
    yield "notes.json", _rows(Note.objects.filter(host__owner=user).order_by("pk"))
    yield (
        "access.json",
        {
            "client_keys": _rows(ClientKey.objects.filter(user=user)),
            "api_tokens": _rows(ApiToken.objects.filter(user=user)),
            "two_factor": _rows(Authenticator.objects.filter(user=user), "data"),
            "sessions": _rows(UserSession.objects.filter(user=user), "session_key", "data"),
            "security_events": _rows(SecurityEvent.objects.filter(user=user).order_by("pk")),
        },
    )


def _of_other_apps(user: User) -> Iterator[tuple[str, QuerySet[Any]]]:
    """What the other apps of the site hold: every row that points to the user or to one of their computers, and the
    parts of such rows.
    """
    for app in _OTHER_APPS:
        if not apps.is_installed(app):
            continue
        for model in apps.get_app_config(app).get_models():
            if theirs := _theirs(model, user) or _parts_of_theirs(model, user):
                yield f"{app}/{model._meta.model_name}.json", model._default_manager.filter(theirs).order_by("pk")


def _theirs(model: type[Model], user: User, by: str = "") -> Q:
    """The condition on rows that point to the user or their computers; ``by``: how the model is reached."""
    theirs = Q()
    for field in model._meta.concrete_fields:
        if field.related_model is User:
            theirs |= Q(**{f"{by}{field.name}": user})
        elif field.related_model is Host:
            theirs |= Q(**{f"{by}{field.name}__owner": user})
    return theirs


def _parts_of_theirs(model: type[Model], user: User) -> Q:
    """The same for rows that go with a row of the same app that points to the user."""
    theirs = Q()
    for field in model._meta.concrete_fields:
        if not isinstance(field, ForeignKey) or field.remote_field.on_delete is not CASCADE:
            continue
        whole = field.related_model
        if isinstance(whole, type) and whole._meta.app_label == model._meta.app_label:
            theirs |= _theirs(whole, user, f"{field.name}__")
    return theirs


def _write_rows(file: IO[bytes], found: QuerySet[Any]) -> None:
    """A list of rows, written one by one, as there may be very many."""
    separator = "[\n"
    for row in found.iterator(chunk_size=PAGE_ROWS):
        text = json.dumps(_row(row, ()), cls=DjangoJSONEncoder, ensure_ascii=False)
        file.write(f"{separator}{text}".encode())
        separator = ",\n"
    file.write(b"\n]\n" if separator != "[\n" else b"[]\n")


def _rows(found: QuerySet[Any], *left_out: str) -> list[dict[str, Any]]:
    """All columns of the rows but secrets and bytes."""
    return [_row(row, left_out) for row in found]


def _row(row: Model, left_out: tuple[str, ...]) -> dict[str, Any]:
    fields = [field for field in row._meta.concrete_fields if field.name not in _SECRET and field.name not in left_out]
    values = {field.attname: field.value_from_object(row) for field in fields}
    return {name: value for name, value in values.items() if not isinstance(value, bytes | memoryview | tuple)}
