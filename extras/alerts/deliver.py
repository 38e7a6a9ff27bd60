"""Send the messages that are due, outside any transaction.

A worker takes some, which others then leave alone for LEASE, sends them in threads, and records each result as it
arrives. If it dies, they are taken again after LEASE. So a message is sent at least once: one that the other side
accepted without that being recorded is sent once more, with the same id.

No channel holds up others: attempts are bounded in time, a channel and a volunteer have few at once, and failures wait
longer each time.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from extras.alerts import sql
from extras.alerts.destinations import UnreadableDestination, decrypt_destination
from extras.alerts.kinds import KINDS
from extras.alerts.models import AlertChannel, AlertMessage
from extras.alerts.rules import KEPT_TRYING, Try, Verdict, judge
from extras.alerts.texts import answer_text, error_text
from extras.alerts.wire import Alert, Request
from portal.fetch.errors import AddressRefused, FetchError
from portal.fetch.sender import SEND_LIMITS, PostOutcome, send
from portal.languages.recipients import written_for
from portal.models import User

log = structlog.get_logger("alerts")

LEASE: Final = dt.timedelta(minutes=3)
"""Longer than a batch takes: four attempts of ten seconds one after another."""
BATCH: Final = 64
THREADS: Final = 16
PER_PERSON: Final = 2
RUN_SECS: Final = 30.0
"""No further batch is started after this long."""
KEPT: Final = dt.timedelta(days=7)
Outcome = AlertMessage.Outcome


@dataclass(frozen=True, slots=True)
class _Answer:
    """The result of an attempt. ``status``: None if there was no answer."""

    status: int | None
    text: str
    is_refused: bool = False
    retry_secs: int = 0


def deliver_due() -> int:
    """Send what is due, batch by batch; return how many messages the other side accepted."""
    nsent, began = 0, time.monotonic()
    _give_up_old(timezone.now())
    while messages := _take(timezone.now()):
        nsent += _deliver(messages)
        if time.monotonic() - began > RUN_SECS:
            break
    return nsent


def delete_old(now: dt.datetime) -> int:
    """Remove messages that were finished long ago; return how many."""
    return AlertMessage.objects.filter(finished_at__lt=now - KEPT).delete()[0]


def _give_up_old(now: dt.datetime) -> None:
    """Give up messages that nobody could send in time, for example because the tasks were stopped."""
    old = AlertMessage.objects.filter(outcome=Outcome.WAITING, created_at__lte=now - KEPT_TRYING, due_at__lte=now)
    # A statement for each language of their readers
    for language in list(old.order_by().values_list("channel__user__language", flat=True).distinct()):
        with written_for(User(language=language)):
            answer = _("It could not be sent within a day.")
        theirs = old.filter(channel__user__language=language)
        theirs.update(outcome=Outcome.FAILED, finished_at=now, answer=answer)


def _take(now: dt.datetime) -> list[AlertMessage]:
    values: dict[str, Any] = {"now": now, "again_at": now + LEASE, "per_person": PER_PERSON, "most": BATCH}
    with connection.cursor() as cursor:
        cursor.execute(sql.TAKE, values)
        taken = [pk for (pk,) in cursor.fetchall()]
    return list(AlertMessage.objects.filter(pk__in=taken).select_related("channel__user"))


def _deliver(messages: list[AlertMessage]) -> int:
    """Deliver a batch. Threads only talk to other servers; all database work is done here."""
    nsent = 0
    requests = list(_requests(messages))
    with ThreadPoolExecutor(THREADS) as pool:
        tries = {pool.submit(_try, request, message.channel.user): message for message, request in requests}
        for done in as_completed(tries):
            try:
                nsent += _note(tries[done], done.result())
            except Exception:  # of any kind: otherwise messages that others have accepted would be sent to them again
                log.exception("alert_not_noted", channel=tries[done].channel_id)
    return nsent


def _requests(messages: list[AlertMessage]) -> Iterator[tuple[AlertMessage, Request]]:
    for message in messages:
        try:
            yield message, _request_for(message.channel, alert_of(message))
        except (UnreadableDestination, ValueError):
            with written_for(message.channel.user):
                text = _("The stored address can no longer be read. Remove this channel and add it again.")
            _note(message, _Answer(None, text, is_refused=True))


def _request_for(channel: AlertChannel, alert: Alert) -> Request:
    """Return the request to post to the channel. Raises UnreadableDestination."""
    return KINDS[channel.kind].request(alert, decrypt_destination(channel))


def alert_of(message: AlertMessage) -> Alert:
    return Alert(
        id=f"msg_{message.uid.hex}",
        kind=message.kind,
        is_over=message.is_over,
        title=message.title,
        lines=tuple(message.lines),
        url=f"{settings.SITE_URL.rstrip('/')}{message.path}",
        created_at=message.created_at,
    )


def _try(request: Request, owner: User) -> _Answer:
    """Send it; return the result, in the language of the channel's owner."""
    with written_for(owner):
        try:
            sent: PostOutcome = send(request.url, request.body, request.headers, SEND_LIMITS)
        except FetchError as error:
            return _Answer(None, error_text(error), is_refused=isinstance(error, AddressRefused))
        except ValueError:
            # A header that HTTP does not allow, stored before a rule was made stricter.
            return _Answer(None, error_text(AddressRefused("", "")), is_refused=True)
        return _Answer(sent.status, answer_text(sent.status), retry_secs=sent.retry_secs)


def _note(message: AlertMessage, answer: _Answer) -> bool:
    """Record the result of an attempt; return whether it was accepted. Locks the channel's row, then messages of it."""
    now = timezone.now()
    with transaction.atomic():
        channel = AlertChannel.objects.select_for_update(no_key=True).filter(pk=message.channel_id).first()
        if channel is None:
            return False
        verdict, again_at = judge(
            Try(
                answer.status,
                answer.is_refused,
                message.ntries,
                message.created_at,
                channel.failing_since,
                answer.retry_secs,
            ),
            now,
        )
        _note_channel(channel, verdict, answer.text, now)
        _note_message(message, verdict, again_at, answer.text, now)
    log.info("alert_tried", channel=channel.pk, kind=channel.kind, verdict=verdict.value, status=answer.status)
    return verdict is Verdict.SENT


def _note_channel(channel: AlertChannel, verdict: Verdict, text: str, now: dt.datetime) -> None:
    if verdict is Verdict.SENT:
        channel.last_sent_at, channel.failing_since, channel.fault = now, None, ""
    else:
        channel.failing_since = channel.failing_since or now
        channel.fault = text
    if verdict is Verdict.PAUSE:
        channel.paused_at = channel.paused_at or now
    channel.save(update_fields=["last_sent_at", "failing_since", "fault", "paused_at"])


def _note_message(
    message: AlertMessage, verdict: Verdict, again_at: dt.datetime | None, text: str, now: dt.datetime
) -> None:
    rows = AlertMessage.objects.filter(pk=message.pk, outcome=Outcome.WAITING)
    if verdict is Verdict.LATER:
        rows.update(due_at=again_at, answer=text)
        return
    rows.update(outcome=Outcome.SENT if verdict is Verdict.SENT else Outcome.FAILED, finished_at=now, answer=text)
    if verdict is Verdict.PAUSE:
        others = AlertMessage.objects.filter(channel=message.channel_id, outcome=Outcome.WAITING)
        others.update(outcome=Outcome.FAILED, finished_at=now, answer=text)
