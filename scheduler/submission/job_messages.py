"""Messages to running jobs (trickle-down), sent by functions of apps and owners of batches."""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from credit.engine.states import ServerState
from credit.models import Result
from portal.languages.messages import Message, MessageError
from scheduler.engine.trickle_downs import MAX_TEXT_NBYTES, MAX_WAITING, is_acceptable
from scheduler.models import TrickleDown


class SendingError(MessageError, ValueError):
    """Why a job cannot be sent a message."""


@transaction.atomic
def send_down(result_id: int, text: str, now: dt.datetime) -> TrickleDown:
    """Send a running job a message. Raises SendingError; locks the result.

    It is sent with replies until the computer is known to have it; the program sees it once. Repeating the call while
    it waits has no effect.
    """
    if not is_acceptable(text):
        raise SendingError(Message("trickle_down_text", nbytes=MAX_TEXT_NBYTES))
    result = Result.objects.select_for_update(no_key=True).filter(pk=result_id).first()
    if result is None or result.server_state != ServerState.IN_PROGRESS:
        raise SendingError(Message("trickle_down_not_running"))
    waiting = list(TrickleDown.objects.filter(result=result, acknowledged_at=None))
    if same := next((message for message in waiting if message.text == text), None):
        return same
    if len(waiting) >= MAX_WAITING:
        raise SendingError(Message("trickle_down_limit", number=MAX_WAITING))
    return TrickleDown.objects.create(result=result, text=text, created_at=now)
