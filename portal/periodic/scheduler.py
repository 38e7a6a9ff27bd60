"""Celery beat's schedule, kept in the database and sent by whichever beat process has the lease.

Any number of beat processes may run, on any machine. A due task is sent in three steps, so that nothing is sent twice:
the database gives it to the process that has the lease, the broker takes the message, the database is told that it
did. What stops in between is sent again; so is what the broker has lost before a worker began with it.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any, Final
from uuid import UUID

import structlog
from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule
from celery.utils.dispatch import Signal
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from kombu.exceptions import OperationalError

from portal.ops import heartbeats
from portal.periodic import broker_mark, sql
from portal.periodic.begun import HEADER
from portal.periodic.lease import Lease

log = structlog.get_logger("beat")

ASK_EVERY_SECS: Final = 2.0
"""How often a process that has not got the lease asks for it."""
RETRY_SECS: Final = 1.0

entries_added = Signal(name="entries_added", providing_args=["names"])
"""Sent by the process with the lease when the schedule has entries that the database did not know."""


class LeaseScheduler(Scheduler):
    """See the module. All times here are those of the monotonic clock."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.lease: Final = Lease(f"{socket.gethostname()}:{os.getpid()}", settings.BEAT_LEASE_SECS)
        self._read_for: UUID | None = None
        self._due: dict[str, float] = {}
        self._ask_at = self._send_from = 0.0
        self._failing_since: float | None = None
        self._sent: set[str] = set()
        self._is_busy = False
        super().__init__(*args, **options)

    def setup_schedule(self) -> None:
        """The schedule of the settings, whose intervals are all in seconds."""
        self.update_from_dict(self.app.conf.beat_schedule)

    def tick(self, *_args: object, **_options: object) -> float:
        """Send at most one task; the seconds until there may be something to do."""
        self._is_busy = True
        try:
            heartbeats.tell_now_and_then("beat", self.lease.holder)
            return max(0.0, min(self._tick(), ASK_EVERY_SECS))
        except (DatabaseError, InterfaceError) as error:
            # Without the database nobody can have the lease.
            log.warning("beat_waits_for_database", reason=type(error).__name__)
            connection.close()
            self._read_for = None
            return RETRY_SECS
        finally:
            self._is_busy = False

    def close(self) -> None:
        """At the end of the process: another one need not wait.

        Celery calls it in the handler of a signal, too, maybe in the middle of a statement: who used the connection
        there would wait for itself. It calls it again when the handler has ended what was going on.
        """
        if self._is_busy:
            return
        self._is_busy = True
        try:
            # A statement may have been broken off on it.
            connection.close()
            self.lease.release()
        except (DatabaseError, InterfaceError):
            log.warning("lease_not_released")
        finally:
            self._is_busy = False
        super().close()

    def _tick(self) -> float:
        if time.monotonic() >= self._ask_at:
            self._ask()
        if self.lease.secs_left() <= 0 or self._read_for != self.lease.token:
            return self._ask_at - time.monotonic()
        name = min(self._due, key=self._due.__getitem__)
        at = max(self._due[name], self._send_from)
        if at > time.monotonic():
            return min(at, self._ask_at) - time.monotonic()
        self._send(name, self.schedule[name])
        return 0.0

    def _ask(self) -> None:
        asked_at = time.monotonic()
        # If the next step fails it is asked again at once, not at each tick.
        self._ask_at = asked_at + ASK_EVERY_SECS
        if not self.lease.ask():
            return
        self._ask_at = asked_at + min(ASK_EVERY_SECS, self.lease.secs / 3)
        if self._read_for != self.lease.token:
            self._read()
            self._read_for = self.lease.token
            log.info("beat_has_the_lease", holder=self.lease.holder)
        self._look_at_broker()

    def _read(self) -> None:
        """When each entry is due, from the database: the process before this one may have sent some."""
        self._confirm()
        names = {"names": list(self.schedule)}
        read_at = time.monotonic()
        with connection.cursor() as cursor:
            cursor.execute(sql.ADD, names)
            added = [name for (name,) in cursor.fetchall()]
            cursor.execute(sql.STANDINGS, names)
            for name, age_secs, is_sent in cursor.fetchall():
                self._due[name] = read_at + _interval_secs(self.schedule[name]) - age_secs if is_sent else read_at
        if added:
            entries_added.send(sender=self, names=added)

    def _look_at_broker(self) -> None:
        """What the broker has lost before a worker began with it is due again."""
        try:
            if broker_mark.is_there():
                return
            with connection.cursor() as cursor:
                cursor.execute(sql.UNSEND, {"token": self.lease.token})
                lost = [name for (name,) in cursor.fetchall()]
            # Only now: if this process ends before, the next one finds no mark either.
            broker_mark.put()
        except OperationalError as error:
            self._stand_back(error)
            return
        if lost:
            log.warning("broker_lost_messages", entries=lost)
        now = time.monotonic()
        self._due |= {name: now for name in lost if name in self.schedule}

    def _send(self, name: str, entry: ScheduleEntry) -> None:
        begun_at = time.monotonic()
        if not self.lease.reserve(name):
            self._ask_at = 0.0
            return
        # As late as possible: a process that was paused since has lost the lease, and finds that out here.
        if self.lease.secs_left() < self.lease.secs / 2:
            self._read_for = None
            self._ask_at = 0.0
            return
        try:
            self._publish(name, entry)
        except OperationalError as error:
            self._stand_back(error)
            return
        self._failing_since = None
        self._due[name] = begun_at + _interval_secs(entry)
        self._sent.add(name)
        self._confirm()

    def _publish(self, name: str, entry: ScheduleEntry) -> None:
        options = {**(entry.options or {}), "headers": {HEADER: name}}
        with broker_mark.broker_errors():
            self.app.send_task(str(entry.task), entry.args, entry.kwargs, retry=False, **options)

    def _confirm(self) -> None:
        """Tell the database what the broker has taken; after a fault of the database once more."""
        if self._sent:
            with connection.cursor() as cursor:
                cursor.execute(sql.SENT, {"names": list(self._sent), "token": self.lease.token})
            self._sent.clear()

    def _stand_back(self, error: OperationalError) -> None:
        """The broker cannot be reached. If it is only this process that cannot, another one should have the lease."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            log.warning("beat_waits_for_broker", reason=type(error).__name__)
        self._send_from = now + RETRY_SECS
        if now - self._failing_since > self.lease.secs:
            self.lease.release()
            self._failing_since = None
            self._ask_at = now + 2 * ASK_EVERY_SECS


def _interval_secs(entry: ScheduleEntry) -> float:
    """Raises TypeError for a schedule of another kind."""
    if not isinstance(entry.schedule, schedule):
        raise TypeError(f"{entry.name}: give the seconds between two runs")
    return float(entry.schedule.seconds)
