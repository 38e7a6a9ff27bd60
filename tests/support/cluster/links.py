"""A network that can be broken: loopback ports whose connections lead to other addresses, for as long as is wanted.

Addresses are (host, port) or the path of a Unix socket.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine
from contextlib import suppress
from enum import Enum
from typing import Any, Self

Address = tuple[str, int] | str


class State(Enum):
    PASSES = "passes"
    DROPS = "drops"
    """Nothing gets through, and nobody is told: as behind a cut cable. New connections are made and stay silent."""
    REFUSES = "refuses"
    """Connections are ended, and new ones ended at once."""


class Network:
    """A loop in a thread that carries the links; a context manager."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._links: list[Link] = []
        return self

    def __exit__(self, *_raised: object) -> None:
        for link in self._links:
            self._do(link.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def link(self, target: Address) -> Link:
        made = Link(self, target)
        self._do(made.open())
        self._links.append(made)
        return made

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def set(self, link: Link, state: State) -> None:
        self._do(link.change(state))


class Link:
    """One way into a server: ``port``, on 127.0.0.1."""

    def __init__(self, network: Network, target: Address) -> None:
        self._network = network
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._state = State.PASSES
        self.port = 0

    def set(self, state: State) -> None:
        self._network.set(self, state)

    async def open(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        self._end_all()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def change(self, state: State) -> None:
        self._state = state
        if state is State.DROPS:
            self._open.clear()
        else:
            self._open.set()
        if state is State.REFUSES:
            self._end_all()

    def _end_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if self._state is not State.REFUSES:
                await self._open.wait()
                await self._carry(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # an end of it is gone
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if isinstance(self._target, str):
            from_target, to_target = await asyncio.open_unix_connection(self._target)
        else:
            from_target, to_target = await asyncio.open_connection(*self._target)
        self._writers.add(to_target)
        ways = [asyncio.create_task(self._pump(*way)) for way in ((reader, to_target), (from_target, writer))]
        try:
            # One end that closes is told to the other.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await self._open.wait()
        finally:
            for way in ways:
                way.cancel()
            self._writers.discard(to_target)
            to_target.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while part := await source.read(65_536):
                await self._open.wait()
                target.write(part)
                await target.drain()
        # What was written last is still on its way to the kernel.
        with suppress(OSError, AttributeError):
            await target.drain()
            target.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)
