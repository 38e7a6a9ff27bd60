"""Processes tell that they live, and count as gone when they are silent; mails are counted."""

from __future__ import annotations

import json
import time
from smtplib import SMTPException, SMTPRecipientsRefused

import pytest
from django.core import mail
from django.core.mail import EmailMessage
from django.core.mail.backends.locmem import EmailBackend
from pytest_django import Settings

from portal.ops import heartbeats
from tests.support.mail_server import MailServer


def test_processes_that_live_are_known_with_their_queues() -> None:
    heartbeats.tell("web", "a:1")
    heartbeats.tell("worker", "celery@a", ["celery", "requested"])
    assert [(process.kind, process.name, process.queues) for process in heartbeats.processes()] == [
        ("web", "a:1", []),
        ("worker", "celery@a", ["celery", "requested"]),
    ]


@pytest.mark.parametrize(("kind", "silent_secs", "lives"), [("web", 50, True), ("web", 70, False), ("beat", 70, False)])
def test_a_process_that_is_silent_counts_as_gone(kind: str, silent_secs: float, lives: bool) -> None:
    facts = json.dumps({"at": time.time() - silent_secs, "queues": []})
    heartbeats._valkey().hset(heartbeats._PROCESSES, f"{kind} a", facts)
    assert bool(heartbeats.processes()) == lives


def test_processes_that_ended_are_forgotten_after_a_while() -> None:
    """A site that replaces its web processes often would have thousands of them to read on each page."""
    for number in range(50):
        facts = json.dumps({"at": time.time() - 700, "queues": []})
        heartbeats._valkey().hset(heartbeats._PROCESSES, f"web a:{number}", facts)
    assert heartbeats.processes() == []
    assert heartbeats._valkey().hlen(heartbeats._PROCESSES) == 0


class ClosedBackend(EmailBackend):
    def open(self) -> bool:
        raise SMTPException("no")


def counting(settings: Settings, backend: str) -> None:
    settings.EMAIL_BACKEND = "portal.ops.mail_backend.CountingBackend"
    settings.COUNTED_EMAIL_BACKEND = f"{__name__}.{backend}"


def test_a_mail_server_that_cannot_be_reached_is_counted(settings: Settings) -> None:
    counting(settings, "ClosedBackend")
    with pytest.raises(SMTPException), mail.get_connection() as connection:
        connection.send_messages([EmailMessage("s", "t", None, ["a@example.org"])])
    assert heartbeats.mail_totals() == {"sent": 0, "failed": 1, "bounced": 0}


class RefusingBackend(EmailBackend):
    def send_messages(self, messages: object) -> int:
        raise SMTPException("no")


def test_mails_are_counted_as_sent_or_refused(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "portal.ops.mail_backend.CountingBackend"
    settings.COUNTED_EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.send_mail("s", "t", None, ["a@example.org"])
    assert len(mail.outbox) == 1
    settings.COUNTED_EMAIL_BACKEND = f"{__name__}.RefusingBackend"
    with pytest.raises(SMTPException):
        mail.send_mail("s", "t", None, ["a@example.org"])
    assert heartbeats.mail_totals() == {"sent": 1, "failed": 1, "bounced": 0}


@pytest.mark.parametrize(("reply", "nbounced"), [("550 5.1.1 no such user", 1), ("450 4.7.1 try again later", 0)])
def test_mails_that_are_refused_for_good_are_counted_apart(settings: Settings, reply: str, nbounced: int) -> None:
    with MailServer(settings) as server:
        server.refused["a@example.org"] = reply
        settings.COUNTED_EMAIL_BACKEND = settings.EMAIL_BACKEND
        settings.EMAIL_BACKEND = "portal.ops.mail_backend.CountingBackend"
        with pytest.raises(SMTPRecipientsRefused):
            mail.send_mail("s", "t", None, ["a@example.org"])
    assert heartbeats.mail_totals() == {"sent": 0, "failed": 1, "bounced": nbounced}
