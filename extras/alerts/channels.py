"""A volunteer's channels: add one, choose its alerts, test it, resume it, remove it.

Each use case is one transaction. Those that add, remove or send a test lock the volunteer's row first, which counts
their channels and tests; then the address of a browser, the channels, and their messages, in the same order as sending.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from hmac import compare_digest
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from extras.alerts.destinations import UnreadableDestination, decrypt_destination, digest_of, encrypt_destination
from extras.alerts.forms import MAX_NAME_CHARS
from extras.alerts.kinds.webhook import new_secret
from extras.alerts.models import TEST, AlertChannel, AlertMessage, AlertTrouble, AlertWatch
from extras.alerts.rules import AlertKind
from extras.alerts.texts import test_line, test_title
from extras.alerts.wire import MAX_TITLE_CHARS, Destination, clean
from portal.celery import send_if_possible
from portal.models import User

TASK: Final = "extras.alerts.tasks.deliver_alerts"
MAX_TESTS_PER_DAY: Final = 20
DEFAULT_KINDS: Final = tuple(kind.value for kind in AlertKind if kind is not AlertKind.NEWS)


class TooManyChannels(Exception):
    """The volunteer has ALERT_CHANNELS_MAX already."""


class TooManyTests(Exception):
    """The volunteer has sent MAX_TESTS_PER_DAY tests today."""


def add(
    user: User, kind: str, name: str, host: str, destination: Destination, form_key: UUID | None = None
) -> AlertChannel:
    """Add a channel; a browser that is one already is resumed. Raises TooManyChannels.

    ``form_key``: of the form. If it was sent before, its channel exists already, with its original secret.

    A browser that somebody else used for their alerts is no longer theirs: they were signed in there before.
    """
    digest = digest_of(destination.url) if destination.is_browser else None
    with transaction.atomic():
        _lock(user)
        if digest is not None:
            _lock_browser(digest)
            _delete(AlertChannel.objects.filter(digest=digest).exclude(user=user))
            if (before := AlertChannel.objects.filter(digest=digest).first()) is not None:
                before.destination = encrypt_destination(user.pk, before.kind, destination)
                before.name = name
                before.paused_at, before.failing_since, before.fault = None, None, ""
                before.save()
                return before
        theirs = AlertChannel.objects.filter(user=user)
        if form_key is not None and (added := theirs.filter(form_key=form_key).first()) is not None:
            return added
        ntheirs = theirs.count()
        if ntheirs >= settings.ALERT_CHANNELS_MAX:
            raise TooManyChannels
        if ntheirs == 0:
            _watch(user)
        return AlertChannel.objects.create(
            user=user,
            kind=kind,
            name=name[:MAX_NAME_CHARS],
            host=host[:255],
            destination=encrypt_destination(user.pk, kind, destination),
            digest=digest,
            form_key=form_key,
            alert_kinds=list(DEFAULT_KINDS),
        )


def move_browser(old: Destination, new: Destination, host: str) -> bool:
    """Follow a browser whose push service gave it another address; False if the old one is nobody's channel.

    ``old`` must be everything that the browser sent before: only the browser and this site know it.
    """
    channel = find_browser(old)
    if channel is None:
        return False
    digest = digest_of(new.url)
    with transaction.atomic():
        _lock(channel.user)
        _lock_browser(digest)
        _delete(AlertChannel.objects.filter(digest=digest).exclude(pk=channel.pk))
        rows = AlertChannel.objects.filter(pk=channel.pk, digest=channel.digest)
        return bool(
            rows.update(
                destination=encrypt_destination(channel.user_id, channel.kind, new),
                digest=digest,
                host=host[:255],
                paused_at=None,
                failing_since=None,
                fault="",
            )
        )


def find_browser(destination: Destination) -> AlertChannel | None:
    """Return the channel to this browser, if the browser's keys match."""
    channel = AlertChannel.objects.filter(digest=digest_of(destination.url)).select_related("user").first()
    if channel is None:
        return None
    try:
        destination_before = decrypt_destination(channel)
    except UnreadableDestination:
        return None
    is_same = [
        compare_digest(getattr(destination_before, name), getattr(destination, name))
        for name in ("url", "p256dh", "auth")
    ]
    return channel if all(is_same) else None


def renew_secret(user: User, pk: int) -> str | None:
    """Give a webhook a new secret, which signs from now on; return it, or None if it is no webhook of this person.

    Locks the channel's row. Raises UnreadableDestination.
    """
    rows = AlertChannel.objects.filter(user=user, pk=pk)
    with transaction.atomic():
        channel = rows.select_for_update(no_key=True).first()
        if channel is None:
            return None
        to = decrypt_destination(channel)
        if not to.key:
            return None
        renewed = replace(to, key=new_secret())
        rows.update(destination=encrypt_destination(user.pk, channel.kind, renewed))
    return renewed.key


def choose(user: User, pk: int, alert_kinds: Collection[str], *, tells_end: bool) -> bool:
    """Choose a channel's alerts; False if it is not this volunteer's."""
    rows = AlertChannel.objects.filter(user=user, pk=pk)
    return bool(rows.update(alert_kinds=sorted(alert_kinds), tells_end=tells_end))


def resume(user: User, pk: int) -> bool:
    """Resume a paused channel; False if it is not this volunteer's."""
    rows = AlertChannel.objects.filter(user=user, pk=pk)
    return bool(rows.update(paused_at=None, failing_since=None, fault=""))


def remove(user: User, pk: int) -> bool:
    """Remove a channel with its messages; False if it is not this volunteer's."""
    with transaction.atomic():
        _lock(user)
        return _delete(AlertChannel.objects.filter(user=user, pk=pk))


def ask_test(user: User, pk: int) -> AlertMessage | None:
    """Queue a message that tests a channel, to be sent at once; None if there is no such channel in use.

    A waiting test is not duplicated. Raises TooManyTests.
    """
    now = timezone.now()
    with transaction.atomic():
        _lock(user)
        channel = AlertChannel.objects.filter(user=user, pk=pk, paused_at=None).first()
        if channel is None:
            return None
        waiting = channel.messages.filter(kind=TEST, outcome=AlertMessage.Outcome.WAITING).first()
        if waiting is not None:
            return waiting
        _count_test(user, now)
        message = AlertMessage.objects.create(
            channel=channel,
            kind=TEST,
            title=clean(test_title(), MAX_TITLE_CHARS),
            lines=[test_line()],
            path=reverse("alerts"),
            created_at=now,
            due_at=now,
        )
        transaction.on_commit(partial(send_if_possible, TASK))
    return message


def _lock(user: User) -> None:
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)


def _lock_browser(digest: bytes) -> None:
    """Lock a browser: if two people add it at the same moment, the second waits, then sees the first's channel."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(digest[:8], "big", signed=True)])


def _delete(rows: QuerySet[AlertChannel]) -> bool:
    """Remove channels with their messages; return whether there were any. Messages are deleted first, separately."""
    numbers = list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))
    AlertChannel.objects.filter(pk__in=numbers).delete()
    return bool(numbers)


def _watch(user: User) -> None:
    """Start watching somebody, from now on: earlier knowledge is discarded."""
    AlertTrouble.objects.filter(user=user).delete()
    AlertWatch.objects.update_or_create(user=user, defaults={"since": timezone.now(), "looked_at": None})


def _count_test(user: User, now: dt.datetime) -> None:
    watch = AlertWatch.objects.select_for_update(no_key=True).get(user=user)
    today = now.astimezone(dt.UTC).date()
    ntests = watch.ntests if watch.tests_on == today else 0
    if ntests >= MAX_TESTS_PER_DAY:
        raise TooManyTests
    AlertWatch.objects.filter(user=user).update(tests_on=today, ntests=ntests + 1)
