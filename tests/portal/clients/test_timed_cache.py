"""What takes long to read is kept for some seconds, and never an older value for longer than a newer one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from portal.clients.database import timed_cache
from portal.clients.database.timed_cache import TimedCache

PATIENCE_SECS = 20


def test_a_value_is_read_once_until_it_is_forgotten() -> None:
    values = iter(range(10))
    cache = TimedCache("numbers", lambda: next(values), kept_secs=600)
    assert [cache.current(), cache.current()] == [0, 0]
    cache.forget()
    assert cache.current() == 1


def test_a_reading_that_takes_very_long_does_not_put_an_older_value_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_cache, "WAIT_SECS", 0.01)
    values = iter(["old", "new"])
    begun, goes_on = threading.Event(), threading.Event()

    def load() -> str:
        value = next(values)
        if value == "old":
            begun.set()
            assert goes_on.wait(PATIENCE_SECS)
        return value

    cache = TimedCache("texts", load, kept_secs=600)
    slow = threading.Thread(target=cache.current)
    slow.start()
    assert begun.wait(PATIENCE_SECS)
    assert cache.current() == "new"
    goes_on.set()
    slow.join(PATIENCE_SECS)
    assert cache.current() == "new"


def test_after_a_failed_reading_the_next_one_tries_again() -> None:
    outcomes: Iterator[str | Exception] = iter(["value", RuntimeError("no database"), "newer"])

    def load() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    cache = TimedCache("texts", load, kept_secs=600)
    assert cache.current() == "value"
    kept = cache._kept
    assert kept is not None
    cache._kept = kept._replace(read_at=kept.read_at - 601)  # old enough to be read again
    with pytest.raises(RuntimeError):
        cache.current()
    assert cache.current() == "newer"
