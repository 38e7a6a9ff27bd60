"""Tells whether the broker has lost what it had: a queue with one message, which nobody takes, is gone then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kombu import Queue
from kombu.exceptions import OperationalError

from portal.celery import app, queue_length

MARK: Final = "cobblestone.mark"


@contextmanager
def broker_errors() -> Iterator[None]:
    """Whatever its library raises while the broker cannot be used becomes an OperationalError."""
    try:
        yield
    except (*app.connection_for_write().connection_errors, *app.connection_for_write().channel_errors) as error:
        raise OperationalError(str(error)) from error


def is_there() -> bool:
    """Raises OperationalError while the broker cannot be used."""
    with broker_errors():
        return queue_length(MARK) > 0


def put() -> None:
    """Have the broker keep the message; a second one does no harm. Raises OperationalError."""
    queue = Queue(MARK, durable=True)
    with broker_errors(), app.producer_or_acquire(None) as producer:
        producer.publish(
            "The broker keeps this message for as long as it loses nothing.",
            routing_key=MARK,
            declare=[queue],
            serializer="json",
            retry=False,
        )
