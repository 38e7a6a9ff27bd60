"""Without Valkey people can still sign in, within limits; code that asks for Valkey itself gets an error."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from django.conf import settings
from django.core.cache import cache, caches
from django.test import Client
from redis import Redis, RedisError

from portal.models import User
from portal.ops import cache as cache_module
from portal.ops.cache import FallbackCache, valkey

# Nobody listens on port 1.
DEAD = "redis://127.0.0.1:1/0"


@pytest.fixture
def dead_valkey(settings: Any) -> Iterator[None]:
    """The site's cache as it is set up, at an address where nobody answers."""
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": DEAD}}
    assert isinstance(caches["default"], FallbackCache)
    cache_module._unavailable_until.clear()
    yield
    caches["default"].clear()
    cache_module._unavailable_until.clear()


def sign_in(client: Client, password: str) -> int:
    reply = client.post("/account/login/", {"login": "alice@example.org", "password": password})
    return reply.status_code


def test_people_sign_in_and_out_while_valkey_is_away(dead_valkey: None, client: Client, alice: User) -> None:
    with structlog.testing.capture_logs() as lines:
        assert sign_in(client, "alice's secret") == 302
    assert client.get("/home/").status_code == 200
    # Asked once, not with each key.
    assert [line["event"] for line in lines].count("cache_in_memory") == 1


def test_guessing_is_limited_all_the_same(dead_valkey: None, client: Client, alice: User) -> None:
    # allauth's limit: ten failures in five minutes from one address at one account.
    for _ in range(10):
        assert sign_in(client, "wrong") == 200
    assert (
        "Too many failed"
        in client.post("/account/login/", {"login": "alice@example.org", "password": "alice's secret"}).content.decode()
    )


def test_signing_up_works_without_valkey(dead_valkey: None, client: Client, db: None) -> None:
    reply = client.post("/account/signup/", {"email": "carol@example.org", "password1": "a long and odd secret"})
    assert reply.status_code == 302
    assert User.objects.filter(email="carol@example.org").exists()


def test_everything_a_cache_can_do_works_in_memory(dead_valkey: None) -> None:
    assert cache.add("a", 1) and not cache.add("a", 2)
    assert (cache.incr("a", 4), cache.get("a"), cache.get("b", "none")) == (5, 5, "none")
    assert cache.touch("a", 60) and cache.has_key("a")
    assert cache.set_many({"b": 2, "c": 3}) == []
    assert cache.get_many(["a", "b", "x"]) == {"a": 5, "b": 2}
    cache.delete_many(["a", "b"])
    assert cache.delete("c") and not cache.has_key("a")


def test_who_asks_for_valkey_itself_hears_that_it_is_away(dead_valkey: None) -> None:
    cache.set("a", 1)
    with pytest.raises(RedisError):
        valkey().get("a")


def test_what_valkey_has_is_used_again_when_it_is_back(settings: Any) -> None:
    cache.set("kept", "in Valkey")
    alive = settings.CACHES
    settings.CACHES = {"default": {**alive["default"], "LOCATION": DEAD}}
    assert cache.get("kept") is None
    settings.CACHES = alive
    assert cache.get("kept") == valkey().get("kept") == "in Valkey"


class Trap:
    """What a pickle can do to the program that reads it: here it writes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.file, "caught")


def test_what_somebody_puts_into_valkey_is_never_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    cache.set("key", 1)
    with Redis.from_url(str(settings.CACHES["default"]["LOCATION"])) as server:
        server.set(cache.make_key("key"), pickle.dumps(Trap(trap)))
    with pytest.raises(ValueError):
        cache.get("key")
    assert not trap.exists()
    # It is not in vain: this is how a pickle is read.
    pickle.loads(pickle.dumps(Trap(trap)))
    assert trap.read_text() == "caught"


@pytest.mark.parametrize("value", [0, -1, 2**40, 1.5, True, False, "text", "17", [1.5, 2.5], {"a": [None]}])
def test_values_come_back_as_they_were(value: Any) -> None:
    cache.set("key", value)
    found = cache.get("key")
    assert (found, type(found)) == (value, type(value))
    assert cache.get_many(["key", "none"]) == {"key": value}
