"""Waiting for something that another process or thread does, and tells nobody: ask again and again, not for ever."""

import socket
import time
from collections.abc import Callable
from typing import TypeVar

POLL_SECS = 0.2

Answer = TypeVar("Answer")


def wait_until(ask: Callable[[], Answer], what: str, timeout_secs: float, poll_secs: float = POLL_SECS) -> Answer:
    """Return the first true answer of `ask`; AssertionError that names `what` when the time is over."""
    deadline = time.monotonic() + timeout_secs
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_secs:g} s in vain for {what}")
        # Another process, or a thread within a library: there is nothing that could wake this one.
        time.sleep(poll_secs)
    return answer


def free_port() -> int:
    """Return a loopback port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
