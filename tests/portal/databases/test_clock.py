"""The site's time is the primary's, whatever a machine's own clock says."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone
from kombu.message import Message

from portal.celery import SiteTask, app
from portal.clients.factory import psycopg_params
from portal.databases import clock, watch
from portal.databases.messages import SiteRequest
from portal.maintenance import runs
from portal.maintenance.jobs import jobs
from portal.models import SecurityEvent, User
from portal.people import deletion, security_events

HOUR = dt.timedelta(hours=1)
MINUTE = dt.timedelta(minutes=1)


@pytest.fixture(autouse=True)
def forgets() -> Iterator[None]:
    yield
    clock.forget()


def is_about(moment: dt.datetime | None, expected: dt.datetime) -> bool:
    return moment is not None and abs(moment - expected) < MINUTE


def learn(ahead: dt.timedelta) -> None:
    asked_at = time.monotonic()
    clock.learn(timezone.now() + ahead, asked_at, time.monotonic())


def test_without_several_hosts_it_is_the_machines_own_time() -> None:
    before = timezone.now()
    assert before <= clock.now() <= timezone.now()


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_the_primarys_time_counts_once_it_is_known(ahead: dt.timedelta) -> None:
    learn(ahead)
    assert is_about(clock.now(), timezone.now() + ahead)


def test_a_step_of_the_machines_own_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learn(dt.timedelta(0))
    right = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: right + HOUR)
    assert is_about(clock.now(), right)


def test_a_slow_answer_says_nothing_unless_it_is_the_first() -> None:
    clock.learn(timezone.now() + HOUR, time.monotonic() - 1, time.monotonic())
    assert is_about(clock.now(), timezone.now() + HOUR)
    clock.learn(timezone.now(), time.monotonic() - 1, time.monotonic())
    assert is_about(clock.now(), timezone.now() + HOUR)


@pytest.mark.django_db(transaction=True)
def test_a_watch_learns_it_with_its_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = watch.Watch(psycopg_params(), lambda _is_meant: 0)
    monkeypatch.setattr(watch.Watch, "ordered", lambda _self, params: params)
    right = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: right - HOUR)
    looks.look()
    looks._close()
    assert is_about(clock.now(), right)


@pytest.mark.django_db(transaction=True)
def test_who_ends_the_watches_learns_no_time_from_them_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = watch.Watch(psycopg_params(), lambda _is_meant: 0)
    monkeypatch.setattr(watch.Watch, "ordered", lambda _self, params: params)
    monkeypatch.setitem(watch._watches, ("a host", "a port"), looks)
    ending = threading.Thread(target=watch.end_all)
    learned = clock.learn

    def learn_late(*_: object) -> None:
        """The answer has come; just now the watches are ended."""
        ending.start()
        ending.join(0.1)
        learned(timezone.now() + HOUR, time.monotonic(), time.monotonic())

    monkeypatch.setattr(clock, "learn", learn_late)
    looks.look()
    ending.join()
    looks._close()
    assert is_about(clock.now(), timezone.now())


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_was_forked_without_a_primary_asks_for_the_time_before_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @app.task(name="tests.ask_time")
    def ask_time() -> dt.datetime:
        return clock.now()

    right = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: right - HOUR)
    monkeypatch.setattr(watch, "is_needed", lambda _params: True)
    monkeypatch.setattr(watch.Watch, "ordered", lambda _self, params: params)
    try:
        done: Any = ask_time.apply()
        assert is_about(done.get(), right)
    finally:
        watch.end_all()


def test_what_is_stored_of_accounts_and_upkeep_has_the_sites_time(
    alice: User, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(HOUR)
    monkeypatch.setattr(app, "send_task", lambda *_, **_options: None)
    monkeypatch.setitem(jobs(), "check", replace(jobs()["check"], run=list))
    deletion.ask_deletion(alice)
    security_events.record(alice, SecurityEvent.Kind.LOGIN, security_events.NOWHERE)
    run = runs.ask("check", operator)
    runs.carry_out(run.pk)
    run.refresh_from_db()
    event = SecurityEvent.objects.get()
    for stored in (alice.deletion_asked_at, event.at, run.asked_at, run.started_at, run.finished_at):
        assert is_about(stored, timezone.now() + HOUR)


@app.task(name="tests.nothing", base=SiteTask)
def nothing() -> None:
    """What the messages below ask for."""


def received(**times: str) -> Any:
    """The message as a worker sees it."""
    headers = {"id": "1", "task": nothing.name, **times}
    message = Message(body="[]", headers=headers, content_type="application/json")
    return SiteRequest(message, app=app, task=nothing, headers=headers, body=((), {}, {}), decoded=True, utc=True)


@pytest.mark.parametrize("behind", [HOUR, -HOUR])
def test_a_message_is_dropped_by_the_sites_time(behind: dt.timedelta) -> None:
    learn(behind)
    old, new = clock.now() - MINUTE, clock.now() + MINUTE
    assert received(expires=old.isoformat()).maybe_expire()
    assert not received(expires=new.isoformat()).maybe_expire()


def test_a_message_is_due_by_the_sites_time() -> None:
    learn(HOUR)
    # In a minute, by the machine's own clock too.
    assert is_about(received(eta=(clock.now() + MINUTE).isoformat()).eta, timezone.now() + MINUTE)
    assert received().eta is None


def test_messages_say_the_sites_time() -> None:
    learn(HOUR)
    assert is_about(app.now(), timezone.now() + HOUR)
