"""The site on an event loop: one thread answers BOINC clients; pages go to Django.

Nothing here blocks: use cases await what they need, and `portal.clients.database.batching` gets it. Every request has
limits for the time of its body and of its answer. Beyond a certain number of requests, more are refused at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any, Final, NamedTuple

import structlog

from portal.clients import request_handler
from portal.clients.address_limit import AddressLimit
from portal.clients.bodies import (
    MAX_DROPPED_NBYTES,
    SMALL_BYTES,
    Body,
    CutOff,
    MemoryLimit,
    Receive,
    Scope,
    Send,
    TooMuch,
    TooSlow,
)
from portal.clients.database.batching import Batcher
from portal.clients.messages import (
    BUSY,
    TRY_LATER,
    ClientReply,
    ClientRequest,
    cut_off,
    refusal,
    refused_by_head,
    too_slow,
)
from portal.clients.paths import ClientPath
from portal.wire.boinc_errors import ERR_GENERIC

MAX_REQUESTS: Final = 1_000
"""Requests answered at a time, which takes a second or two. More are told to come back later."""
MAX_BODIES_NBYTES: Final = 256 * 1024 * 1024
"""Limit of all bodies in memory together, not counting short ones."""

TOO_MANY: Final = "Too many requests from your address are under way. Please try again in a few minutes."


class _Head(NamedTuple):
    """The parts of a request's head that are used."""

    length: int
    is_chunked: bool
    user_agent: str
    address: str
    id: str


class ClientApplication:
    """An ASGI application. ``pages``: the one that answers all but ``paths``.

    ``body_secs``: how long we wait for a body beyond the time that its length needs; ``answer_secs``: for an answer.
    ``most_per_address``: limit of concurrent requests of one address.
    """

    def __init__(
        self,
        paths: Mapping[str, ClientPath],
        batcher: Batcher,
        pages: Any,
        *,
        is_behind_proxy: bool,
        body_secs: float,
        answer_secs: float,
        most_per_address: int,
    ) -> None:
        self._paths = paths
        self._batcher = batcher
        self._pages = pages
        self._is_behind_proxy = is_behind_proxy
        self._body_secs = body_secs
        self._answer_secs = answer_secs
        self._addresses = AddressLimit(most_per_address)
        self._nunder_way = 0
        self._memory = MemoryLimit(MAX_BODIES_NBYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        began = perf_counter()
        route = self._paths.get(scope["path"])
        head = self._head(scope)
        with self._addresses.slot(head.address) as is_admitted:
            if route is not None:
                await self._answer_client(route, scope, head, receive, send, began=began, is_admitted=is_admitted)
            elif is_admitted:
                await self._pages(scope, receive, send)
            else:
                reply = ClientReply(TOO_MANY.encode(), status=429, content_type="text/plain")
                await _send(send, reply, ends_connection=True)

    async def _answer_client(
        self,
        route: ClientPath,
        scope: Scope,
        head: _Head,
        receive: Receive,
        send: Send,
        *,
        began: float,
        is_admitted: bool,
    ) -> None:
        method = scope["method"]
        structlog.contextvars.bind_contextvars(request_id=head.id)
        with Body(receive, head.length, self._body_secs, self._memory) as body:
            try:
                if is_admitted:
                    reply = await self._reply(route, method, scope["query_string"].decode("latin-1"), head, body)
                else:
                    reply = refusal(route.root, ERR_GENERIC, TOO_MANY)
                    with suppress(CutOff, TooSlow, TooMuch):
                        await body.drop(SMALL_BYTES)
            except Exception:
                # A fault of the driver (use cases turn theirs into replies): the client is still answered.
                reply = request_handler.failed(route)
        request_handler.record(
            route,
            reply,
            method=method,
            id_=head.id,
            began=began,
            bytes_in=head.length,
            user_agent=head.user_agent,
        )
        await _send(send, reply, ends_connection=not body.is_over)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._batcher.close()
        await send({"type": "lifespan.shutdown.complete"})

    def _head(self, scope: Scope) -> _Head:
        length, is_chunked, user_agent, given_id, forwarded = 0, False, "", None, ""
        client = scope.get("client")
        address = str(client[0]) if client else ""
        for name, value in scope["headers"]:
            if name == b"content-length":
                length = int(value) if value.isdigit() and len(value) < 19 else 0
            elif name == b"user-agent":
                user_agent = value.decode("latin-1")
            elif name == b"transfer-encoding":
                is_chunked = True
            elif self._is_behind_proxy and name == b"x-forwarded-for":
                forwarded = value.decode("latin-1")
            elif self._is_behind_proxy and name == b"x-request-id":
                given_id = value.decode("latin-1")
        address = request_handler.forwarded_address(forwarded) or address
        return _Head(length, is_chunked, user_agent, address, request_handler.request_id(given_id))

    async def _reply(self, route: ClientPath, method: str, query: str, head: _Head, body: Body) -> ClientReply:
        reply = refused_by_head(route, method, head.length, is_chunked=head.is_chunked)
        if reply is None:
            try:
                content = b""
                if method == "POST" and not route.is_stream:
                    content = await body.read(route.body_bytes)
                    await body.drop(route.longest_bytes)
            except TooSlow:
                return too_slow(route)
            except CutOff:
                return cut_off(route)
            except TooMuch:
                reply = refusal(route.root, ERR_GENERIC, BUSY)
            else:
                request = ClientRequest(method, route.path, query, content, head.length, head.address)
                reply = await self._answer(route, request, body)
        with suppress(CutOff, TooSlow, TooMuch):
            await body.drop(MAX_DROPPED_NBYTES)
        return reply

    async def _answer(self, route: ClientPath, request: ClientRequest, body: Body) -> ClientReply:
        if route.is_stream:
            # Each part of the body has its own time limit. Most of the time is waiting, so any number may be under way.
            return await self._batcher.run(request_handler.steps(route, request), body.next_part)
        if self._nunder_way >= MAX_REQUESTS:
            return refusal(route.root, ERR_GENERIC, BUSY)
        self._nunder_way += 1
        try:
            async with asyncio.timeout(self._answer_secs):
                return await self._batcher.run(request_handler.steps(route, request))
        except TimeoutError:
            return refusal(route.root, ERR_GENERIC, TRY_LATER)
        finally:
            self._nunder_way -= 1


async def _send(send: Send, reply: ClientReply, *, ends_connection: bool) -> None:
    headers = [
        (b"content-type", reply.content_type.encode()),
        (b"content-length", b"%d" % len(reply.body)),
        *[(name.lower().encode(), value.encode()) for name, value in reply.headers],
    ]
    if ends_connection:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
