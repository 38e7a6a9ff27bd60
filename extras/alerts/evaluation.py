"""Evaluate the volunteers who have channels: anything that has begun or ended becomes messages.

An evaluation is one transaction, with the lock on the volunteer's watch. So an observation seen twice makes one message
for each channel, and none is lost if the task dies. Nothing is sent here (`extras.alerts.deliver`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.urls import reverse

from extras.alerts.facts import events_of_alerts, read_observations
from extras.alerts.models import TEST, AlertChannel, AlertMessage, AlertTrouble, AlertWatch
from extras.alerts.rules import AlertKind, Evaluation, Observation, OpenAlert, evaluate
from extras.alerts.texts import lines_of, title_of
from extras.alerts.wire import MAX_LINE_CHARS, MAX_LINES, MAX_TITLE_CHARS, clean
from portal.languages.recipients import written_for
from portal.models import SecurityEvent

log = structlog.get_logger("alerts")

EVERY: Final = dt.timedelta(minutes=10)
"""How often a volunteer is evaluated; one with a new security event at the next run."""
OVERLAP: Final = dt.timedelta(minutes=10)
"""Events are looked for from this long before the last evaluation: a long transaction may write one late."""
EVENTS_TOLD_FOR: Final = dt.timedelta(days=7)
"""After a pause of the tasks, older events are no longer reported."""
WATCHES_PER_RUN: Final = 500
DAY: Final = dt.timedelta(days=1)
_MAX_TEXT_CHARS: Final = 1000


def evaluate_all(now: dt.datetime) -> int:
    """Evaluate volunteers who are due, the longest waiting first; return how many messages there are to send."""
    nmessages = 0
    for user_id in due(now):
        try:
            nmessages += evaluate_user(user_id, now)
        except Exception:  # of any kind: the longest waiting one is first next time too, and would block all others
            log.exception("alerts_not_evaluated", user=user_id)
    return nmessages


def due(now: dt.datetime) -> list[int]:
    """Return the volunteers to evaluate now."""
    events = SecurityEvent.objects.filter(events_of_alerts(), user=OuterRef("user"), at__gt=OuterRef("looked_at"))
    rows = AlertWatch.objects.filter(user__is_active=True, user__deletion_asked_at=None)
    rows = rows.filter(Exists(AlertChannel.objects.filter(user=OuterRef("user"))))
    rows = rows.filter(Q(looked_at=None) | Q(looked_at__lte=now - EVERY) | Exists(events))
    ordered = rows.order_by(F("looked_at").asc(nulls_first=True), "pk")
    return list(ordered.values_list("pk", flat=True)[:WATCHES_PER_RUN])


def evaluate_user(user_id: int, now: dt.datetime) -> int:
    """Evaluate one volunteer; return how many messages there are to send. Safe to repeat.

    Locks the volunteer's watch.
    """
    with transaction.atomic():
        rows = AlertWatch.objects.select_for_update(of=("self",), no_key=True).select_related("user")
        watch = rows.filter(pk=user_id).first()
        if watch is None:
            return 0
        is_first = watch.looked_at is None
        since = max(watch.since, now - EVENTS_TOLD_FOR, (watch.looked_at or watch.since) - OVERLAP)
        troubles = {row.key: row for row in AlertTrouble.objects.filter(user=user_id)}
        before = {key: _open_alert(row) for key, row in troubles.items()}
        with written_for(watch.user):
            evaluated = evaluate(before, read_observations(watch.user, now, since), now, is_first=is_first)
            _remember(user_id, troubles, evaluated, now)
            nmessages = _write_messages(user_id, evaluated, now)
        AlertWatch.objects.filter(pk=user_id).update(looked_at=now)
    return nmessages


def _open_alert(row: AlertTrouble) -> OpenAlert:
    return OpenAlert(AlertKind(row.kind), row.key, row.text, row.path, row.gone_since)


def _remember(user_id: int, rows: dict[str, AlertTrouble], evaluated: Evaluation, now: dt.datetime) -> None:
    """Write the changes: new troubles, those that are gone or back, and those that are over."""
    new, changed = [], []
    for key, event in evaluated.open.items():
        row = rows.get(key)
        if row is None:
            text = event.text[:_MAX_TEXT_CHARS]
            new.append(
                AlertTrouble(user_id=user_id, key=key, kind=event.kind, text=text, path=event.path, began_at=now)
            )
        elif row.gone_since != event.gone_since:
            row.gone_since = event.gone_since
            changed.append(row)
    AlertTrouble.objects.bulk_create(new)
    AlertTrouble.objects.bulk_update(changed, ["gone_since"])
    ended = [row.pk for key, row in rows.items() if key not in evaluated.open]
    if ended:
        AlertTrouble.objects.filter(pk__in=ended).delete()


def _write_messages(user_id: int, evaluated: Evaluation, now: dt.datetime) -> int:
    """Write a message of each kind for each channel that wants it; beyond the daily limit they are dropped.

    Messages about the security of the account have a separate limit, and take no room from others.
    """
    if not evaluated.begun and not evaluated.over:
        return 0
    of_day = Q(messages__created_at__gt=now - DAY) & ~Q(messages__outcome="left_out") & ~Q(messages__kind=TEST)
    of_security = Q(messages__kind=AlertKind.SECURITY)
    channels = AlertChannel.objects.filter(user=user_id, paused_at=None).annotate(
        nday=Count("messages", filter=of_day & ~of_security),
        nday_security=Count("messages", filter=of_day & of_security),
    )
    messages = []
    for channel in channels:
        of_channel = _messages(channel, evaluated, now)
        security = [message for message in of_channel if message.kind == AlertKind.SECURITY]
        others = [message for message in of_channel if message.kind != AlertKind.SECURITY]
        beyond = [
            *others[max(0, settings.ALERTS_PER_CHANNEL_DAY - channel.nday) :],
            *security[max(0, settings.SECURITY_ALERTS_PER_CHANNEL_DAY - channel.nday_security) :],
        ]
        for message in beyond:
            message.outcome, message.finished_at = AlertMessage.Outcome.LEFT_OUT, now
        messages += of_channel
    AlertMessage.objects.bulk_create(messages)
    return sum(message.finished_at is None for message in messages)


def _messages(channel: AlertChannel, evaluated: Evaluation, now: dt.datetime) -> list[AlertMessage]:
    messages = []
    for kind in AlertKind:
        if kind not in channel.alert_kinds:
            continue
        if begun := [event for event in evaluated.begun if event.kind is kind]:
            messages.append(_message(channel, kind, begun, now, is_over=False))
        if channel.tells_end and (over := [event for event in evaluated.over if event.kind is kind]):
            messages.append(_message(channel, kind, over, now, is_over=True))
    return messages


def _message(
    channel: AlertChannel, kind: AlertKind, about: Sequence[Observation | OpenAlert], now: dt.datetime, *, is_over: bool
) -> AlertMessage:
    return AlertMessage(
        channel=channel,
        kind=kind,
        is_over=is_over,
        title=clean(title_of(kind, len(about), is_over=is_over), MAX_TITLE_CHARS),
        lines=[clean(line, MAX_LINE_CHARS) for line in lines_of([event.text for event in about], MAX_LINES)],
        path=about[0].path if len(about) == 1 else _page_of(about),
        created_at=now,
        due_at=now,
    )


def _page_of(about: Iterable[Observation | OpenAlert]) -> str:
    """Return the page that shows several things together."""
    paths = {event.path for event in about}
    return paths.pop() if len(paths) == 1 else reverse("home")
