"""Read the page of alerts."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from extras.alerts.kinds import KINDS
from extras.alerts.kinds.kind import ChannelKind
from extras.alerts.models import TEST, AlertChannel, AlertMessage
from portal.models import User

WATCHED_FOR: Final = dt.timedelta(minutes=3)
"""How long a page polls for the result of a test; tasks send it within a minute."""
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ChannelLine:
    """A channel, its last test of the last day, and how many messages were dropped within a day, as of ``now``."""

    channel: AlertChannel
    test: AlertMessage | None
    nleft_out: int
    now: dt.datetime

    @property
    def kind(self) -> ChannelKind:
        return KINDS[self.channel.kind]

    @property
    def is_being_tested(self) -> bool:
        return self._is_untried and self.test is not None and self.now - self.test.created_at < WATCHED_FOR

    @property
    def is_stuck(self) -> bool:
        """Whether no task has sent it yet."""
        return self._is_untried and not self.is_being_tested

    @property
    def _is_untried(self) -> bool:
        return self.test is not None and self.test.outcome == AlertMessage.Outcome.WAITING and not self.test.answer


def read_channels(user: User, now: dt.datetime) -> list[ChannelLine]:
    """Read the user's channels in the order in which they were added. Three statements."""
    channels = list(AlertChannel.objects.filter(user=user))
    mine = AlertMessage.objects.filter(channel__in=[channel.pk for channel in channels])
    newest = mine.order_by("channel_id", "-created_at", "-pk").distinct("channel_id")
    tests = {row.channel_id: row for row in newest.filter(kind=TEST, created_at__gt=now - _DAY)}
    left_out: dict[int, int] = {}
    for pk in mine.filter(outcome="left_out", created_at__gt=now - _DAY).values_list("channel_id", flat=True):
        left_out[pk] = left_out.get(pk, 0) + 1
    return [ChannelLine(channel, tests.get(channel.pk), left_out.get(channel.pk, 0), now) for channel in channels]
