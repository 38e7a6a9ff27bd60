"""Ask the event loop's application without a server: one ASGI exchange, on a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import close_old_connections

from portal.clients.application import ClientApplication
from portal.clients.bodies import Message
from portal.clients.database.batching import Batcher
from portal.clients.factory import connection_params
from portal.clients.pages import Pages


@dataclass(frozen=True, slots=True)
class Reply:
    status_code: int
    headers: dict[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """``parts``: the body as it comes; None among them: nothing comes any more. ``address``: who asks."""

    method: str = "POST"
    path: str = "/rpc.php"
    query: str = ""
    parts: Sequence[bytes | None] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    address: str = "127.0.0.1"


def post(body: bytes, path: str = "/rpc.php", **headers: str) -> Asked:
    return Asked(path=path, parts=[body], headers={"content-length": str(len(body)), **headers})


def ask(*asked: Asked, **options: Any) -> list[Reply]:
    """The replies to these requests, which come at the same moment; ``options`` replace the application's."""

    async def all_at_once() -> list[Reply]:
        batcher = Batcher(connection_params(), close_old_connections)
        given = {
            "paths": settings.CLIENT_PATHS,
            "is_behind_proxy": settings.BEHIND_PROXY,
            "body_secs": settings.CLIENT_BODY_SECS,
            "answer_secs": settings.CLIENT_ANSWER_SECS,
            "most_per_address": settings.REQUESTS_PER_ADDRESS,
            "pages": Pages(WSGIHandler(), settings.CLIENT_BODY_SECS),
            **options,
        }
        application = ClientApplication(batcher=batcher, **given)
        try:
            return await asyncio.gather(*[exchange(application, each) for each in asked])
        finally:
            await batcher.close()

    return asyncio.run(all_at_once())


async def exchange(application: ClientApplication, asked: Asked) -> Reply:
    parts = list(asked.parts)
    sent: list[Message] = []

    async def receive() -> Message:
        part = parts.pop(0) if parts else b""
        if part is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = {"host": "localhost", **asked.headers}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "http",
        "path": asked.path,
        "query_string": asked.query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": (asked.address, 12345),
        "server": ("127.0.0.1", 80),
    }
    await application(scope, receive, send)
    start, *bodies = sent
    answered = {name.decode().title(): value.decode() for name, value in start["headers"]}
    return Reply(start["status"], answered, b"".join(message.get("body", b"") for message in bodies))
