"""Look after the volunteers who have channels: what has begun and what is over becomes messages.

A look is one transaction, with the lock on the volunteer's watch. So of what is seen twice, one message is made for
each channel, and none is lost if the task dies. Nothing is sent here (`accounting.alerts.deliver`).
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

from accounting.alerts.facts import events_of_alerts, read_seen
from accounting.alerts.texts import lines_of, title_of
from accounting.engine.alerts import AlertKind, Known, Looked, Seen, look
from accounting.models import AlertChannel, AlertMessage, AlertTrouble, AlertWatch
from accounting.models.alerts import TEST
from accounting.wire.alerts import MAX_LINE_CHARS, MAX_LINES, MAX_TITLE_CHARS, clean
from portal.languages.recipients import written_for
from portal.models import SecurityEvent

log = structlog.get_logger("alerts")

EVERY: Final = dt.timedelta(minutes=10)
"""How often a volunteer is looked after; one with a new security event at the next run."""
OVERLAP: Final = dt.timedelta(minutes=10)
"""Events are looked for from so long before the last look: one may be written late, by a long transaction."""
EVENTS_TOLD_FOR: Final = dt.timedelta(days=7)
"""After a pause of the tasks, older events are not told any more."""
WATCHES_PER_RUN: Final = 500
DAY: Final = dt.timedelta(days=1)
_MAX_TEXT_CHARS: Final = 1000


def look_after_all(now: dt.datetime) -> int:
    """Look after those who are due, the longest waiting first; how many messages there are to send."""
    nmessages = 0
    for user_id in due(now):
        try:
            nmessages += look_after(user_id, now)
        except Exception:  # of whatever kind: who waits longest is first the next time too, and would keep all others
            log.exception("alerts_not_looked_for", user=user_id)
    return nmessages


def due(now: dt.datetime) -> list[int]:
    """Whom to look after now."""
    events = SecurityEvent.objects.filter(events_of_alerts(), user=OuterRef("user"), at__gt=OuterRef("looked_at"))
    rows = AlertWatch.objects.filter(user__is_active=True, user__deletion_asked_at=None)
    rows = rows.filter(Exists(AlertChannel.objects.filter(user=OuterRef("user"))))
    rows = rows.filter(Q(looked_at=None) | Q(looked_at__lte=now - EVERY) | Exists(events))
    ordered = rows.order_by(F("looked_at").asc(nulls_first=True), "pk")
    return list(ordered.values_list("pk", flat=True)[:WATCHES_PER_RUN])


def look_after(user_id: int, now: dt.datetime) -> int:
    """Look after one volunteer; how many messages there are to send. Safe to repeat.

    Locks the volunteer's watch.
    """
    with transaction.atomic():
        rows = AlertWatch.objects.select_for_update(of=("self",), no_key=True).select_related("user")
        watch = rows.filter(pk=user_id).first()
        if watch is None:
            return 0
        is_first = watch.looked_at is None
        since = max(watch.since, now - EVENTS_TOLD_FOR, (watch.looked_at or watch.since) - OVERLAP)
        known = {row.key: row for row in AlertTrouble.objects.filter(user=user_id)}
        before = {key: _known(row) for key, row in known.items()}
        with written_for(watch.user):
            looked = look(before, read_seen(watch.user, now, since), now, is_first=is_first)
            _remember(user_id, known, looked, now)
            nmessages = _write_messages(user_id, looked, now)
        AlertWatch.objects.filter(pk=user_id).update(looked_at=now)
    return nmessages


def _known(row: AlertTrouble) -> Known:
    return Known(AlertKind(row.kind), row.key, row.text, row.path, row.gone_since)


def _remember(user_id: int, rows: dict[str, AlertTrouble], looked: Looked, now: dt.datetime) -> None:
    """Write what changed: new ones, those that are gone or back, and those that are over."""
    new, changed = [], []
    for key, each in looked.known.items():
        row = rows.get(key)
        if row is None:
            text = each.text[:_MAX_TEXT_CHARS]
            new.append(AlertTrouble(user_id=user_id, key=key, kind=each.kind, text=text, path=each.path, began_at=now))
        elif row.gone_since != each.gone_since:
            row.gone_since = each.gone_since
            changed.append(row)
    AlertTrouble.objects.bulk_create(new)
    AlertTrouble.objects.bulk_update(changed, ["gone_since"])
    ended = [row.pk for key, row in rows.items() if key not in looked.known]
    if ended:
        AlertTrouble.objects.filter(pk__in=ended).delete()


def _write_messages(user_id: int, looked: Looked, now: dt.datetime) -> int:
    """A message of each kind for each channel that wants it; beyond the limit of the day they are left out.

    Those about the security of the account never are, and take no room from others.
    """
    if not looked.begun and not looked.over:
        return 0
    of_day = (
        Q(messages__created_at__gt=now - DAY)
        & ~Q(messages__outcome="left_out")
        & ~Q(messages__kind__in=[TEST, AlertKind.SECURITY])
    )
    channels = AlertChannel.objects.filter(user=user_id, paused_at=None).annotate(nday=Count("messages", filter=of_day))
    messages = []
    for channel in channels:
        room = settings.ALERTS_PER_CHANNEL_DAY - channel.nday
        wanted = _messages(channel, looked, now)
        limited = [message for message in wanted if message.kind != AlertKind.SECURITY]
        for message in limited[max(0, room) :]:
            message.outcome, message.finished_at = AlertMessage.Outcome.LEFT_OUT, now
        messages += wanted
    AlertMessage.objects.bulk_create(messages)
    return sum(message.finished_at is None for message in messages)


def _messages(channel: AlertChannel, looked: Looked, now: dt.datetime) -> list[AlertMessage]:
    found = []
    for kind in AlertKind:
        if kind not in channel.alert_kinds:
            continue
        if begun := [each for each in looked.begun if each.kind is kind]:
            found.append(_message(channel, kind, begun, now, is_over=False))
        if channel.tells_end and (over := [each for each in looked.over if each.kind is kind]):
            found.append(_message(channel, kind, over, now, is_over=True))
    return found


def _message(
    channel: AlertChannel, kind: AlertKind, about: Sequence[Seen | Known], now: dt.datetime, *, is_over: bool
) -> AlertMessage:
    return AlertMessage(
        channel=channel,
        kind=kind,
        is_over=is_over,
        title=clean(title_of(kind, len(about), is_over=is_over), MAX_TITLE_CHARS),
        lines=[clean(line, MAX_LINE_CHARS) for line in lines_of([each.text for each in about], MAX_LINES)],
        path=about[0].path if len(about) == 1 else _page_of(about),
        created_at=now,
        due_at=now,
    )


def _page_of(about: Iterable[Seen | Known]) -> str:
    """Where several things are seen together."""
    paths = {each.path for each in about}
    return paths.pop() if len(paths) == 1 else reverse("home")
