"""Beat's schedule in the database: who may send, what is sent after a change of hands, and what the broker lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

from portal.celery import app
from portal.models import BeatLease, PeriodicTask
from portal.periodic import begun, broker_mark
from portal.periodic.lease import last_holder
from portal.periodic.scheduler import LeaseScheduler
from tests.support import beat_messages
from tests.support.beat_messages import client, empty_broker, sent

pytestmark = pytest.mark.django_db
# Due every 5 and every 15 seconds, and once a day.
SCHEDULE = {name: app.conf.beat_schedule[name] for name in ("transition", "finish", "erase")}


@pytest.fixture(autouse=True)
def queue() -> Iterator[None]:
    with empty_broker():
        yield


class Beat(beat_messages.Beat):
    """A beat process with a short schedule."""

    def __init__(self) -> None:
        super().__init__(SCHEDULE)

    def work(self) -> list[str]:
        """Ask for the lease and send what is due; what was sent meanwhile."""
        before = len(sent())
        self.asks_and_sends(10)
        return sorted(each.entry for each in sent()[before:])


def make_due(*names: str) -> None:
    """As if they had been sent a day ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE portal_periodictask SET due_at = due_at - interval '1 day', begun_at = begun_at - interval '1 day'"
            " WHERE name = ANY (%s)",
            [list(names)],
        )


def expire() -> None:
    """As if the process with the lease had been silent for long."""
    BeatLease.objects.update(expires_at="2020-01-01T00:00:00Z")


def test_a_clock_that_was_set_back_stops_nobody() -> None:
    """The database's: after a failover it is another machine's."""
    Beat().work()
    BeatLease.objects.update(expires_at="2100-01-01T00:00:00Z")
    PeriodicTask.objects.update(due_at="2100-01-01T00:00:00Z")
    second = Beat()
    second.work()
    assert second.lease.secs_left() > 0
    assert second._due["finish"] - time.monotonic() <= 15


def test_new_entries_are_due_after_their_interval() -> None:
    assert Beat().work() == []
    assert {task.name for task in PeriodicTask.objects.all()} == set(SCHEDULE)


def test_one_of_two_has_the_lease() -> None:
    one, other = Beat(), Beat()
    one.work()
    make_due("erase")
    assert other.work() == []
    assert (one.lease.secs_left() > 0, other.lease.secs_left() > 0) == (True, False)
    held = last_holder()
    assert held is not None and held.left_secs > 0


def test_after_a_change_of_hands_each_due_task_is_sent_once() -> None:
    one, other = Beat(), Beat()
    one.work()
    make_due("erase", "finish")
    expire()
    assert other.work() == ["erase", "finish"]
    # The first one believes that it has the lease, and that both are due.
    one._due |= {"erase": 0.0, "finish": 0.0}
    one._read_for = one.lease.token
    assert one.work() == []
    expire()
    assert one.work() == []


def test_a_process_that_was_paused_before_sending_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Beat(), Beat()
    one.work()
    one._due["erase"] = 0.0
    reserve = one.lease.reserve

    def pause(name: str) -> bool:
        found = reserve(name)
        one.lease._held_until -= one.lease.secs
        expire()
        assert other.work() == ["erase"]
        return found

    monkeypatch.setattr(one.lease, "reserve", pause)
    one.work()
    assert [each.entry for each in sent()] == ["erase"]


@pytest.mark.django_db(transaction=True)
def test_a_process_that_ends_leaves_the_lease_to_others_at_once() -> None:
    one, other = Beat(), Beat()
    one.work()
    one.close()
    other.work()
    assert other.lease.secs_left() > 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("busy_with", ["a tick", "its end"])
def test_signals_in_the_middle_of_a_statement_end_the_process_and_leave_the_lease(
    busy_with: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Celery does it: the handler closes the scheduler and raises, and the scheduler is closed once more."""
    one, other = Beat(), Beat()
    one.work()

    def end(*_: object) -> None:
        one.close()
        raise SystemExit

    before = signal.signal(signal.SIGALRM, end)
    name = "RESERVE" if busy_with == "a tick" else "RELEASE"
    slow = "SELECT pg_sleep(20), %(token)s::uuid"
    with monkeypatch.context() as context:
        context.setattr(f"portal.periodic.sql.{name}", slow)
        make_due("erase")
        one._due["erase"] = 0.0
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        began = time.monotonic()
        with pytest.raises(SystemExit):
            one.tick() if busy_with == "a tick" else one.close()
        assert time.monotonic() - began < 10
    signal.signal(signal.SIGALRM, before)
    one.close()
    other.work()
    assert other.lease.secs_left() > 0


def test_what_the_broker_did_not_take_is_sent_as_soon_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    beat = Beat()
    beat.work()
    beat._due["erase"] = 0.0

    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as context:
        context.setattr(app, "send_task", refuse)
        assert beat.work() == []
    assert beat.work() == ["erase"]
    assert beat.work() == []


def test_who_cannot_reach_the_broker_for_long_leaves_the_lease_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Beat(), Beat()
    one.work()

    def refuse() -> bool:
        raise OperationalError

    with monkeypatch.context() as context:
        context.setattr(broker_mark, "is_there", refuse)
        one.work()
        assert one.lease.secs_left() > 0
        assert one._failing_since is not None
        one._failing_since -= one.lease.secs
        one.work()
    other.work()
    assert other.lease.secs_left() > 0


def test_what_a_lost_broker_had_is_sent_again_unless_a_worker_has_begun_with_it() -> None:
    beat = Beat()
    beat.work()
    beat._due |= {"erase": 0.0, "finish": 0.0}
    assert beat.work() == ["erase", "finish"]
    _begin("finish")
    app.control.purge()
    client().delete(broker_mark.MARK)
    assert beat.work() == ["erase"]
    assert broker_mark.is_there()
    assert beat.work() == []


def _begin(entry: str) -> None:
    """As a worker does when it begins with the message."""
    task = import_string(SCHEDULE[entry]["task"])
    task.push_request(**{begun.HEADER: entry})
    try:
        begun.note(task)
    finally:
        task.pop_request()


def test_what_the_broker_has_taken_is_not_sent_again_after_a_fault_of_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beat = Beat()
    beat.work()
    beat._due["erase"] = 0.0
    confirm: Callable[[LeaseScheduler], None] = LeaseScheduler._confirm
    faults = [DatabaseError()]

    def fail_once(self: LeaseScheduler) -> None:
        if self._sent and faults:
            raise faults.pop()
        confirm(self)

    monkeypatch.setattr(LeaseScheduler, "_confirm", fail_once)
    monkeypatch.setattr(connection, "close", lambda: None)  # the test's transaction goes on
    assert beat.work() == ["erase"]
    assert not faults
    assert beat.work() == []
