"""Processes tell that they live, and count as gone when they are silent; mails are counted."""

from __future__ import annotations

import json
import time
from smtplib import SMTPException

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from pytest_django import Settings

from portal.ops import heartbeats


def test_processes_that_live_are_known_with_their_queues() -> None:
    heartbeats.tell("web", "a:1")
    heartbeats.tell("worker", "celery@a", ["celery", "requested"])
    assert [(each.kind, each.name, each.queues) for each in heartbeats.processes()] == [
        ("web", "a:1", []),
        ("worker", "celery@a", ["celery", "requested"]),
    ]


@pytest.mark.parametrize(("kind", "silent_secs", "lives"), [("web", 50, True), ("web", 70, False), ("beat", 70, True)])
def test_a_process_that_is_silent_counts_as_gone(kind: str, silent_secs: float, lives: bool) -> None:
    facts = json.dumps({"at": time.time() - silent_secs, "queues": []})
    heartbeats._valkey().hset(heartbeats._PROCESSES, f"{kind} a", facts)
    assert bool(heartbeats.processes()) == lives


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
    assert heartbeats.mail_totals() == {"sent": 1, "failed": 1}
