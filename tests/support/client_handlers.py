"""Use cases that tell what they were given, or fail, for tests of the drivers."""

from __future__ import annotations

import threading
from urllib.parse import parse_qs

import orjson
from django.contrib.contenttypes.models import ContentType

from portal.clients.effects import Call, ReadBody, in_thread
from portal.clients.messages import ClientReply, ClientRequest

goes_on = threading.Event()


def tell(request: ClientRequest) -> ClientReply:
    """Says what it got, or fails."""
    if "fail" in parse_qs(request.query):
        raise ValueError(request.query)
    seen = {"length": len(request.body), "is_cut": request.is_cut, "address": request.address}
    return ClientReply(orjson.dumps(seen))


async def fail_later(request: ClientRequest) -> ClientReply:
    await Call(_fail)
    return ClientReply(b"never")


def _fail() -> None:
    raise ValueError("in a thread")


async def count(request: ClientRequest) -> ClientReply:
    """Uses Django's connection."""
    number = await in_thread(ContentType.objects.count)
    return ClientReply(str(number).encode())


async def wait(request: ClientRequest) -> ClientReply:
    """Waits until `goes_on`."""
    await in_thread(goes_on.wait, 20)
    return ClientReply(b"went on")


async def sum_up(request: ClientRequest) -> ClientReply:
    """The length of a stream."""
    nbytes = 0
    while part := await ReadBody(1000):
        nbytes += len(part)
    return ClientReply(str(nbytes).encode())
