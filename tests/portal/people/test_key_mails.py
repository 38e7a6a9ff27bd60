"""Mails about what BOINC clients did are sent once, also while the broker or the mail server is away."""

from __future__ import annotations

import datetime as dt
from typing import Any

import psycopg
import pytest
from allauth.account.models import EmailAddress
from celery import Celery
from django.core.mail import send_mail
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from portal.celery import app
from portal.models import User, WaitingMail
from portal.people import key_mails
from tests.support.mail_server import MailServer
from tests.support.site_process import database_url

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def confirmed(alice: User) -> User:
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    return alice


@pytest.mark.django_db(transaction=True)
def test_without_a_broker_the_mail_waits_for_the_task(
    confirmed: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody listens there. As the current app, other tests' tasks would go there, too.
    nowhere = Celery(broker="redis://127.0.0.1:1/0", set_as_current=False)
    monkeypatch.setattr(app, "send_task", nowhere.send_task)
    with MailServer(settings) as server:
        with transaction.atomic():
            key_mails.tell_of_key(confirmed, "192.0.2.8")
        assert (server.taken, WaitingMail.objects.count()) == ([], 1)
        for _ in range(2):
            key_mails.send_waiting(timezone.now())
        assert (server.taken, WaitingMail.objects.count()) == ([confirmed.email], 0)


def test_what_is_undone_brings_no_mail(confirmed: User) -> None:
    with transaction.atomic():
        key_mails.tell_of_key(confirmed, "192.0.2.8")
        transaction.set_rollback(True)
    assert not WaitingMail.objects.exists()


def test_a_mail_that_was_not_accepted_is_tried_again(confirmed: User, bob: User, settings: Settings) -> None:
    EmailAddress.objects.create(user=bob, email=bob.email, verified=True, primary=True)
    for person in (confirmed, bob):
        key_mails.tell_of_key(person, "192.0.2.8")
    now = timezone.now()
    with MailServer(settings) as server:
        server.refused[confirmed.email] = "450 try again later"
        key_mails.send_waiting(now)
        # It holds up nobody else, and nobody takes it before its time.
        key_mails.send_waiting(now + MINUTE)
        assert server.taken == [bob.email]
        server.refused.clear()
        key_mails.send_waiting(now + key_mails.LEASE + MINUTE)
        assert server.taken == [bob.email, confirmed.email]
    assert not WaitingMail.objects.exists()


def test_while_there_is_no_mail_server_all_wait_and_at_last_are_given_up(confirmed: User, settings: Settings) -> None:
    with MailServer(settings):
        pass  # its address, where nobody listens any more
    for _ in range(3):
        key_mails.tell_of_key(confirmed, "192.0.2.8")
    key_mails.send_waiting(timezone.now())
    assert WaitingMail.objects.count() == 3
    key_mails.send_waiting(timezone.now() + key_mails.KEPT_TRYING + MINUTE)
    assert not WaitingMail.objects.exists()


def test_mails_that_nobody_tried_to_send_for_days_are_sent(confirmed: User, bob: User, settings: Settings) -> None:
    """No worker ran, or the clock was set."""
    EmailAddress.objects.create(user=bob, email=bob.email, verified=True, primary=True)
    for person in (bob, confirmed, confirmed):
        key_mails.tell_of_key(person, "192.0.2.8")
    with MailServer(settings) as server:
        server.refused[bob.email] = "450 try again later"
        key_mails.send_waiting(timezone.now() + key_mails.KEPT_TRYING + MINUTE)
        assert server.taken == [confirmed.email] * 2
    # This one was tried, in vain, and is too old by now.
    assert not WaitingMail.objects.exists()


def test_a_mail_that_was_stored_by_a_clock_that_was_ahead_does_not_wait_for_that_time(
    confirmed: User, settings: Settings
) -> None:
    key_mails.tell_of_key(confirmed, "192.0.2.8")
    ahead = timezone.now() + dt.timedelta(days=400)
    WaitingMail.objects.update(at=ahead, due_at=ahead)
    with MailServer(settings) as server:
        key_mails.send_waiting(timezone.now() + MINUTE)
        assert server.taken == [confirmed.email]


def test_a_worker_whose_clock_is_behind_sends_no_mail_that_another_is_sending(
    confirmed: User, settings: Settings
) -> None:
    key_mails.tell_of_key(confirmed, "192.0.2.8")
    taken = key_mails._take(timezone.now())
    assert taken is not None
    with MailServer(settings) as server:
        key_mails.send_waiting(taken.at - dt.timedelta(hours=1))
        assert server.taken == []


def test_an_address_that_no_mail_can_be_written_to_keeps_nobody_elses_mail_waiting(
    confirmed: User, bob: User, settings: Settings
) -> None:
    for person, email in ((bob, f"bob@{'ü' * 63}.de"), (confirmed, confirmed.email)):
        User.objects.filter(pk=person.pk).update(email=email)
        EmailAddress.objects.update_or_create(user=person, defaults={"email": email, "verified": True, "primary": True})
        key_mails.tell_of_key(person, "192.0.2.8")
    with MailServer(settings) as server:
        key_mails.send_waiting(timezone.now())
        assert server.taken == [confirmed.email]
    assert not WaitingMail.objects.exists()


def test_a_mail_that_nobody_knows_how_to_write_keeps_no_other_waiting(
    confirmed: User, bob: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    EmailAddress.objects.create(user=bob, email=bob.email, verified=True, primary=True)
    for person in (confirmed, bob, confirmed):
        key_mails.tell_of_key(person, "192.0.2.8")
    now = timezone.now()

    def write(*values: Any) -> None:
        if values[-1] == [bob.email]:
            raise ZeroDivisionError
        send_mail(*values)

    monkeypatch.setattr(key_mails, "send_mail", write)
    with MailServer(settings) as server:
        with pytest.raises(ZeroDivisionError):
            key_mails.send_waiting(now)
        key_mails.send_waiting(now + MINUTE)
        assert server.taken == [confirmed.email] * 2
    assert WaitingMail.objects.get().user == bob


def test_many_mails_that_nobody_knows_how_to_write_keep_no_other_waiting_and_are_given_up(
    confirmed: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ntries = key_mails.LEASE // MINUTE
    for number in range(ntries + 1):
        key_mails.tell_of_key(confirmed, f"192.0.2.{number}")
    now = timezone.now()

    def write(*values: Any) -> None:
        if f"192.0.2.{ntries}" not in values[1]:
            raise ZeroDivisionError
        send_mail(*values)

    monkeypatch.setattr(key_mails, "send_mail", write)
    with MailServer(settings) as server:
        # A run a minute: when all have been tried, the first ones are due again.
        for number in range(ntries + 1):
            with pytest.raises(ZeroDivisionError):
                key_mails.send_waiting(now + number * MINUTE)
        assert server.taken == [confirmed.email]
    for _ in range(ntries):
        with pytest.raises(ZeroDivisionError):
            key_mails.send_waiting(now + key_mails.KEPT_TRYING + MINUTE)
    assert not WaitingMail.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_worker_passes_over_a_mail_that_another_is_just_taking(confirmed: User, settings: Settings) -> None:
    for _ in range(2):
        key_mails.tell_of_key(confirmed, "192.0.2.8")
    with psycopg.connect(database_url()) as other, MailServer(settings) as server, connection.cursor() as cursor:
        other.execute("SELECT FROM portal_waitingmail ORDER BY id LIMIT 1 FOR UPDATE")
        # If it did not pass over it, it would wait for ever.
        cursor.execute("SET lock_timeout = '20s'")
        key_mails.send_waiting(timezone.now())
        cursor.execute("RESET lock_timeout")
        assert (server.taken, WaitingMail.objects.count()) == ([confirmed.email], 1)


def test_a_full_batch_is_followed_by_the_next(confirmed: User, settings: Settings) -> None:
    for _ in range(key_mails.BATCH + 1):
        key_mails.tell_of_key(confirmed, "192.0.2.8")
    with MailServer(settings) as server:
        key_mails.send_waiting(timezone.now())
        assert len(server.taken) == key_mails.BATCH
        key_mails.send_waiting(timezone.now())
        assert len(server.taken) == key_mails.BATCH + 1


def test_however_slow_the_mail_server_is_a_batch_ends_before_another_worker_takes_its_mails(settings: Settings) -> None:
    # The connection and the greeting; EHLO, STARTTLS, EHLO, two of AUTH; MAIL, RCPT, DATA, the text; QUIT
    steps = 2 + 5 + 4 + 1
    assert key_mails.BATCH * steps * settings.EMAIL_TIMEOUT <= key_mails.LEASE.total_seconds()


def test_what_is_refused_for_good_is_not_tried_again(confirmed: User, settings: Settings) -> None:
    key_mails.tell_of_key(confirmed, "192.0.2.8")
    with MailServer(settings) as server:
        server.refused[confirmed.email] = "550 no such mailbox"
        key_mails.send_waiting(timezone.now())
    assert not WaitingMail.objects.exists()
