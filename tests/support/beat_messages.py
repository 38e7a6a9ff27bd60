"""Beat processes with a short schedule, and what they have put into the broker's queue."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from redis import Redis

from portal.celery import app
from portal.periodic import broker_mark
from portal.periodic.scheduler import LeaseScheduler


@dataclass(frozen=True, slots=True)
class Sent:
    """A message: the schedule's entry, and when it was sent by the clock of whoever sent it."""

    entry: str
    at: dt.datetime


@cache
def client() -> Redis:
    """The Valkey that is the broker of this test process, on one connection."""
    channel: Any = app.connection_for_read().default_channel
    found: Redis = channel.client
    return found


def sent(*entries: str) -> list[Sent]:
    """Oldest first; of these entries, or of all."""
    found = []
    lifetimes = {name: entry["options"]["expires"] for name, entry in app.conf.beat_schedule.items()}
    for text in reversed(client().lrange(app.conf.task_default_queue, 0, -1)):
        headers = json.loads(text)["headers"]
        if (name := headers.get("periodic")) and (not entries or name in entries):
            expires_at = dt.datetime.fromisoformat(headers["expires"])
            found.append(Sent(name, expires_at - dt.timedelta(seconds=lifetimes[name])))
    return found


@contextmanager
def empty_broker() -> Iterator[None]:
    """A broker that has nothing but its mark."""
    app.control.purge()
    broker_mark.put()
    yield
    app.control.purge()
    client().delete(broker_mark.MARK)


class Beat(LeaseScheduler):
    """A beat process with these entries of the schedule, which is told when to do something."""

    def __init__(self, schedule: dict[str, Any]) -> None:
        self._entries = schedule
        super().__init__(app=app)

    def setup_schedule(self) -> None:
        self.update_from_dict(self._entries)

    def asks_and_sends(self, nturns: int) -> None:
        """Ask for the lease and send what is due."""
        self._ask_at = self._send_from = 0.0
        for _ in range(nturns):
            self.tick()
