"""Replies of pages to browsers: buffered in a file as fast as they are made, and sent as fast as they are read.

So the thread that makes a page never waits for its reader. A reader that is too slow is cut off.
"""

from __future__ import annotations

import asyncio
from tempfile import SpooledTemporaryFile
from typing import Final

from portal.clients.bodies import LEAST_BYTES_PER_SEC, MemoryLimit, Message, Send

_IN_MEMORY_BYTES: Final = 64 * 1024
_PART_BYTES: Final = 16 * 1024
"""How much is sent at a time."""


class PageReply:
    """One reply; a context manager, which releases its space at its end.

    ``grace_secs``: how far the reader may fall behind LEAST_BYTES_PER_SEC. ``room``: the bytes that all replies
    together may have waiting for their readers; short ones are taken anyway.
    """

    def __init__(self, send: Send, grace_secs: float, room: MemoryLimit) -> None:
        self._send = send
        self._grace_secs = self._left_secs = grace_secs
        self._room = room
        self._start: Message | None = None
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115  # __exit__ closes it
        self._nwritten = self._nsent = 0
        self._is_whole = self._is_cut = False
        self._news = asyncio.Event()

    def __enter__(self) -> PageReply:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._room.kept -= self._nwritten - self._nsent
        self._file.close()
        self._is_cut = True

    async def put(self, message: Message) -> None:
        """Take the next part of the reply; never waits. After a cut the rest is dropped."""
        if self._is_cut:
            return
        if message["type"] == "http.response.start":
            self._start = message
            return
        part = message.get("body", b"")
        if self._nwritten + len(part) > _IN_MEMORY_BYTES and self._room.kept + len(part) > self._room.most:
            self._is_cut = True
        else:
            self._file.seek(self._nwritten)
            self._file.write(part)
            self._nwritten += len(part)
            self._room.kept += len(part)
            self._is_whole = not message.get("more_body", False)
        self._news.set()

    async def send_all(self) -> None:
        """Send what was put, until the reply is complete or its reader is cut off."""
        try:
            while not self._is_over:
                await self._news.wait()
                self._news.clear()
                await self._send_waiting()
        except TimeoutError:
            self._is_cut = True

    @property
    def _is_over(self) -> bool:
        return self._is_cut or (self._is_whole and self._nsent == self._nwritten and self._start is None)

    async def _send_waiting(self) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)
        while not self._is_cut:
            self._file.seek(self._nsent)
            part = self._file.read(_PART_BYTES)
            is_last = self._is_whole and self._nsent + len(part) == self._nwritten
            if not part and not is_last:
                return
            await self._in_time({"type": "http.response.body", "body": part, "more_body": not is_last}, len(part))
            self._nsent += len(part)
            self._room.kept -= len(part)
            if is_last:
                return

    async def _in_time(self, message: Message, nbytes: int) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(self._left_secs + nbytes / LEAST_BYTES_PER_SEC):
            await self._send(message)
        left_secs = self._left_secs - (loop.time() - began) + nbytes / LEAST_BYTES_PER_SEC
        self._left_secs = min(self._grace_secs, left_secs)
