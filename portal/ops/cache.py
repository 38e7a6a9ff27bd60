"""Django's cache in Valkey, which falls back to this process's memory while Valkey is unreachable.

So people can still sign in: each process then keeps its own counts of django-allauth's limits and used codes. Code that
must know whether Valkey works, or whose counts must hold for all processes, uses `valkey()`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import structlog
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis import RedisError

log = structlog.get_logger("cache")

# After a failure Valkey is not tried again for this long, so that no request waits for it.
RETRY_AFTER_SECS: Final = 5.0
_MAX_ENTRIES: Final = 10_000
# When each unreachable Valkey is tried again, by its address.
_unavailable_until: dict[str, float] = {}


class JsonSerializer:
    """Stores values as JSON, so that nothing that somebody else put into Valkey is ever run, as a pickle would be."""

    def dumps(self, value: Any) -> int | bytes:
        return value if type(value) is int else json.dumps(value).encode()  # so that INCR works on whole numbers

    def loads(self, stored: bytes) -> Any:
        return json.loads(stored)


class FallbackCache(RedisCache):
    """Django's cache in Valkey; while that fails, a cache in memory."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self.strict = RedisCache(server, params)
        self._server = server
        self._fallback = LocMemCache(f"instead of {server}", {"OPTIONS": {"MAX_ENTRIES": _MAX_ENTRIES}})

    def _ask(self, method: str, *args: Any, **options: Any) -> Any:
        if time.monotonic() >= _unavailable_until.get(self._server, 0.0):
            try:
                return getattr(self.strict, method)(*args, **options)
            except RedisError as error:
                _unavailable_until[self._server] = time.monotonic() + RETRY_AFTER_SECS
                log.warning("cache_in_memory", reason=type(error).__name__)
        return getattr(self._fallback, method)(*args, **options)

    def add(self, key: Any, value: Any, *args: Any, **options: Any) -> bool:
        return bool(self._ask("add", key, value, *args, **options))

    def get(self, key: Any, *args: Any, **options: Any) -> Any:
        return self._ask("get", key, *args, **options)

    def set(self, key: Any, value: Any, *args: Any, **options: Any) -> None:
        self._ask("set", key, value, *args, **options)

    def touch(self, key: Any, *args: Any, **options: Any) -> bool:
        return bool(self._ask("touch", key, *args, **options))

    def delete(self, key: Any, *args: Any, **options: Any) -> bool:
        return bool(self._ask("delete", key, *args, **options))

    def get_many(self, keys: Iterable[Any], *args: Any, **options: Any) -> dict[Any, Any]:
        return cast(dict[Any, Any], self._ask("get_many", list(keys), *args, **options))

    def has_key(self, key: Any, *args: Any, **options: Any) -> bool:
        return bool(self._ask("has_key", key, *args, **options))

    def incr(self, key: Any, *args: Any, **options: Any) -> int:
        return int(self._ask("incr", key, *args, **options))

    def set_many(self, data: Mapping[Any, Any], *args: Any, **options: Any) -> list[Any]:
        return cast(list[Any], self._ask("set_many", data, *args, **options))

    def delete_many(self, keys: Iterable[Any], *args: Any, **options: Any) -> None:
        self._ask("delete_many", list(keys), *args, **options)

    def clear(self) -> None:
        self._ask("clear")
        self._fallback.clear()


def valkey() -> BaseCache:
    """The cache in Valkey itself; raises RedisError while it cannot be reached."""
    cache = caches["default"]
    return cache.strict if isinstance(cache, FallbackCache) else cache
