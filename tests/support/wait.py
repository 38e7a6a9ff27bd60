"""Waiting for other processes and threads that give no sign: polling, with a time limit."""

import fcntl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

POLL_SECS = 0.2

Answer = TypeVar("Answer")


def wait_until(ask: Callable[[], Answer], what: str, timeout_secs: float, poll_secs: float = POLL_SECS) -> Answer:
    """Return the first true answer of `ask`; AssertionError that names `what` when the time is over."""
    deadline = time.monotonic() + timeout_secs
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_secs:g} s in vain for {what}")
        # It happens in another process or in a library's thread, and sends no signal: ask again later.
        time.sleep(poll_secs)
    return answer


def wait_for_lock(lock: Path) -> None:
    """Return when no process holds this lock file any more."""

    def is_free() -> bool:
        with lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    wait_until(is_free, f"{lock} to be released", 30.0, poll_secs=0.02)


def join(*threads: threading.Thread) -> None:
    """Wait for threads to end; on a busy machine that takes minutes. AssertionError if one hangs."""
    deadline = time.monotonic() + 300.0
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        assert not thread.is_alive(), "a thread hangs"
