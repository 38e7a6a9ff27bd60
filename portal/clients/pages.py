"""Django's pages behind the event loop, for installations with one port, in a bounded number of threads.

A request is read completely before it gets a thread, so neither a slow sender nor a slow reader
(`portal.clients.page_replies`) holds one. In production nginx sends pages to servers of their own
(docs/how-to/deploy.md).
"""

from __future__ import annotations

import asyncio
from os import SEEK_END
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

from a2wsgi import WSGIMiddleware

from portal.clients.bodies import Body, CutOff, MemoryLimit, Message, Receive, Scope, Send, TooSlow
from portal.clients.page_replies import PageReply
from portal.databases import deadline

THREADS: Final = 16
BUSY: Final = b"The site is busy. Please try again in a minute.\n"
MAX_WAITING: Final = 500
"""The most requests being answered or waiting for a thread."""
MAX_BODY_NBYTES: Final = 64 * 1024 * 1024
MAX_BODIES_NBYTES: Final = 64 * 1024 * 1024
"""Limit of all bodies that are not in files yet, together, not counting short ones."""
MAX_FILES_NBYTES: Final = 1024 * 1024 * 1024
"""The total size of all bodies, in files or not."""
MAX_REPLIES_NBYTES: Final = 1024 * 1024 * 1024
"""Limit of all replies waiting for their readers, together, on disk, not counting short ones."""
_IN_MEMORY_BYTES: Final = 64 * 1024
_PART_BYTES: Final = 256 * 1024


class Pages:
    """An ASGI application that hands requests to Django's handler, a WSGI application."""

    def __init__(self, django: Any, body_secs: float) -> None:
        self._site: Any = WSGIMiddleware(django, workers=THREADS)
        self._body_secs = body_secs
        self._memory = MemoryLimit(MAX_BODIES_NBYTES)
        self._replies = MemoryLimit(MAX_REPLIES_NBYTES)
        self._nbytes_in_files = 0
        self._nunder_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
            try:
                if await self._read(scope, receive, send, file):
                    await self._answer(scope, _replay(file, receive), send)
            finally:
                self._nbytes_in_files -= file.seek(0, SEEK_END)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._nunder_way >= MAX_WAITING:
            await _refuse(send, 503, BUSY)
            return
        with PageReply(send, self._body_secs, self._replies) as reply:
            sending = asyncio.create_task(reply.send_all())
            self._nunder_way += 1
            try:
                # It begins before the wait for a thread, which gets a copy of this context.
                with deadline.of_request():
                    await self._site(scope, receive, reply.put)
            except BaseException:
                sending.cancel()
                raise
            finally:
                self._nunder_way -= 1
            await sending

    async def _read(self, scope: Scope, receive: Receive, send: Send, file: IO[bytes]) -> bool:
        """Read the body into the file; False if the request has been refused."""
        # WSGI cannot tell X_Forwarded_For, which anybody may send, from X-Forwarded-For.
        scope["headers"] = [(name, value) for name, value in scope["headers"] if b"_" not in name]
        headers = dict(scope["headers"])
        if b"transfer-encoding" in headers:
            await _refuse(send, 411, b"Send the request with a Content-Length, not in chunks.\n")
            return False
        length = int(headers.get(b"content-length", b"0"))
        if length > MAX_BODY_NBYTES:
            await _refuse(send, 413, b"The request is too long.\n")
            return False
        try:
            with Body(receive, length, self._body_secs, self._memory) as body:
                while part := await body.next_part(_PART_BYTES):
                    if self._nbytes_in_files + len(part) > MAX_FILES_NBYTES:
                        await _refuse(send, 503, BUSY)
                        return False
                    file.write(part)
                    self._nbytes_in_files += len(part)
        except TooSlow:
            await _refuse(send, 408, b"The request came too slowly.\n")
            return False
        except CutOff:
            return False
        file.seek(0)
        return True


def _replay(file: IO[bytes], receive: Receive) -> Receive:
    """Replay the body for Django's handler, then pass on the connection's messages."""
    is_over = False

    async def replayed() -> Message:
        nonlocal is_over
        if is_over:
            return await receive()
        part = file.read(_PART_BYTES)
        is_over = len(part) < _PART_BYTES
        return {"type": "http.request", "body": part, "more_body": not is_over}

    return replayed


async def _refuse(send: Send, status: int, text: bytes) -> None:
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),  # a part of the body may be missing
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
