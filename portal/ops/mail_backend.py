"""Sends mails as EMAIL_URL says, and counts those sent and those that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.module_loading import import_string

from portal.ops.heartbeats import count_mails
from portal.wire.mail_refusals import Refusal, refusal_of


class CountingBackend(BaseEmailBackend):
    """Wraps the real backend, and raises what that raises."""

    def __init__(self, fail_silently: bool = False, **options: Any) -> None:
        super().__init__(fail_silently=fail_silently)
        self._backend = import_string(settings.COUNTED_EMAIL_BACKEND)(fail_silently=fail_silently, **options)

    def open(self) -> bool | None:
        try:
            opened: bool | None = self._backend.open()
        except Exception:
            # Any error of the real backend: nothing can be sent, and there is at least one mail to send.
            count_mails("failed", 1)
            raise
        return opened

    def close(self) -> None:
        self._backend.close()

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        sent = 0
        try:
            sent = self._backend.send_messages(email_messages) or 0
        except Exception as error:
            # Any error of the real backend; some say that the recipient's server refuses the mail for good.
            if refusal_of(error) is Refusal.FOR_GOOD:
                count_mails("bounced", 1)
            raise
        finally:
            count_mails("sent", sent)
            count_mails("failed", len(email_messages) - sent)
        return sent
