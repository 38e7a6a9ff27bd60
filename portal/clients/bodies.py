"""Bodies of requests, read from an ASGI connection a part at a time, with limits of time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LEAST_BYTES_PER_SEC: Final = 2_000
"""A body that comes more slowly is given up after ``grace_secs``; a modem is three times as fast."""
SMALL_BYTES: Final = 64 * 1024
"""This much of each body is always kept. Most requests are shorter, so they are taken whatever others send."""

MAX_DROPPED_NBYTES: Final = 64 * 1024 * 1024
"""Up to this much of an unused body is read and dropped: a client that is still sending does not see the reply."""


class CutOff(OSError):
    """The client is gone, or sent less than it had announced."""

    def __str__(self) -> str:
        return "the body ended before its Content-Length"


class TooSlow(OSError):
    """The body did not come in time."""

    def __str__(self) -> str:
        return "the body came too slowly"


class TooMuch(OSError):
    """All bodies together have filled the memory that they may use."""


@dataclass(slots=True)
class MemoryLimit:
    """The memory that several bodies share. ``most``: the bytes that they may keep; ``kept``: what they keep now."""

    most: int
    kept: int = 0


class Body:
    """A request's body; a context manager, which releases its memory at its end.

    ``length``: announced; ``grace_secs``: how far it may fall behind LEAST_BYTES_PER_SEC, however much came before.
    ``memory`` counts the bytes that have arrived, not the announced ones: a client may announce many and send none.
    Everything that reads raises CutOff, TooSlow and TooMuch.
    """

    def __init__(self, receive: Receive, length: int, grace_secs: float, memory: MemoryLimit) -> None:
        self._receive = receive
        self._nto_come = length
        self._grace_secs = self._left_secs = grace_secs
        self._memory = memory
        self._nkept = 0
        self._buffer = bytearray()
        # Not the exception: its traceback would keep this object, and so the server its connection.
        self._fault: type[CutOff | TooSlow] | None = None

    def __enter__(self) -> Body:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._count(-self._nkept)

    @property
    def is_over(self) -> bool:
        """Whether the body is complete; if not, the connection cannot be used again."""
        return self._nto_come == 0

    async def read(self, nbytes: int) -> bytes:
        """Read this many bytes, which the caller keeps; fewer only at the end."""
        while len(self._buffer) < nbytes and self._nto_come:
            if self._nkept > SMALL_BYTES and self._memory.kept > self._memory.most:
                raise TooMuch
            part = await self._receive_more()
            self._count(len(part))
            self._buffer += part
        return self._take(nbytes)

    async def next_part(self, nbytes: int) -> bytes:
        """Read at most this many bytes, none at the end. They stop counting, as the caller is soon done with them.

        Bytes that came before a fault are returned first. Instead of raising TooMuch it returns shorter parts.
        """
        try:
            part = await self.read(nbytes)
        except OSError:
            if not self._buffer:
                raise
            part = self._take(nbytes)
        self._count(-len(part))
        return part

    async def drop(self, most: int) -> None:
        """Read and drop the rest, up to this many bytes: a client that is still sending does not see the reply."""
        most -= len(self._buffer)
        self._count(-len(self._buffer))
        self._buffer.clear()
        while most > 0 and self._nto_come:
            most -= len(await self._receive_more())

    def _take(self, nbytes: int) -> bytes:
        part = bytes(self._buffer[:nbytes])
        del self._buffer[:nbytes]
        return part

    def _count(self, nbytes: int) -> None:
        self._nkept += nbytes
        self._memory.kept += nbytes

    async def _receive_more(self) -> bytes:
        if self._fault is not None:
            raise self._fault
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._left_secs):
                message = await self._receive()
        except TimeoutError:
            self._fault = TooSlow
            raise TooSlow from None
        part: bytes = message.get("body", b"")[: self._nto_come]
        self._nto_come -= len(part)
        left_secs = self._left_secs - (loop.time() - began) + len(part) / LEAST_BYTES_PER_SEC
        self._left_secs = min(self._grace_secs, left_secs)
        if self._nto_come and not message.get("more_body", False):
            # This is also how a client that is gone looks.
            self._fault = CutOff
            if not part:
                raise CutOff
        return part
