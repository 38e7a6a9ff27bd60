"""Values that every client's request needs and that are slow to read: kept in this process for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from portal.clients.effects import SingleFlight, in_thread
from portal.databases import deadline

Value = TypeVar("Value")
WAIT_SECS: Final = 3.0
"""How long to wait for another request's load."""


class _Loaded(NamedTuple, Generic[Value]):
    value: Value
    read_at: float


class TimedCache(Generic[Value]):
    """A value that one request for all reads again when it is ``kept_secs`` old.

    While one reads, the others use the old value, for as long again; after a pause, or at first, all wait. ``load`` may
    block.
    """

    def __init__(self, name: str, load: Callable[[], Value], kept_secs: float) -> None:
        self._name: Final = name
        self._load: Final = load
        self.kept_secs = kept_secs
        self._kept: _Loaded[Value] | None = None
        self._being_renewed: _Loaded[Value] | None = None
        self._nforgotten = 0
        self._reading: Final = threading.Lock()
        self._changing: Final = threading.Lock()

    async def fresh(self) -> Value:
        """The value, for the use cases of clients: only the request that has to read it again waits."""
        loaded = self._kept
        if loaded is not None and self._may_be_used(loaded):
            return loaded.value
        self._being_renewed = loaded
        # The number keeps a request that comes after a change from getting a value read before it.
        reading = SingleFlight((self._name, self._nforgotten), lambda: in_thread(self._read_again, loaded))
        try:
            return await reading
        except Exception:
            # Any error: there may have been no thread to read it.
            self._being_renewed = None
            raise

    def current(self) -> Value:
        """The value, for callers that may block."""
        loaded = self._kept
        if loaded is not None and self._may_be_used(loaded):
            return loaded.value
        self._being_renewed = loaded
        return self._read_again(loaded)

    def forget(self) -> None:
        """Read the value again at the next request, because its source has changed."""
        with self._changing:
            self._nforgotten += 1
            self._kept = None

    def _may_be_used(self, loaded: _Loaded[Value]) -> bool:
        age_secs = time.monotonic() - loaded.read_at
        return age_secs <= self.kept_secs or (loaded is self._being_renewed and age_secs <= 2 * self.kept_secs)

    def _read_again(self, before: _Loaded[Value] | None) -> Value:
        """Read the value again, unless another thread has just done so."""
        request = deadline.current()
        is_ours = self._reading.acquire(timeout=WAIT_SECS if request is None else min(WAIT_SECS, request.left_secs()))
        try:
            while True:
                loaded, nforgotten = self._kept, self._nforgotten
                if loaded is not None and loaded is not before:
                    return loaded.value
                read = _Loaded(read_at=time.monotonic(), value=self._load())
                with self._changing:
                    # It may lack what changed meanwhile, and a thread that waited too long may have read it later.
                    is_newest = self._kept is None or self._kept.read_at <= read.read_at
                    if nforgotten == self._nforgotten and is_newest:
                        self._kept = read
                        return read.value
        except BaseException:
            self._being_renewed = None  # the next request tries again
            raise
        finally:
            if is_ours:
                self._reading.release()
