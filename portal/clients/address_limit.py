"""A limit on the requests that one address has under way. An IPv6 network (/64) counts as one address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from ipaddress import ip_address

from portal.sign_in.throttle import network_of


class AddressLimit:
    """Allows each address ``most`` requests at once. This machine, with its proxy and operators, has no limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def slot(self, address: str) -> Iterator[bool]:
        """Whether the request may be answered; it counts until the end of the block."""
        counted_as = _counted_as(address)
        if counted_as is None:
            yield True
        elif self._under_way[counted_as] >= self._most:
            yield False
        else:
            self._under_way[counted_as] += 1
            try:
                yield True
            finally:
                self._under_way[counted_as] -= 1
                if not self._under_way[counted_as]:
                    del self._under_way[counted_as]


@lru_cache(maxsize=4096)
def _counted_as(address: str) -> str | None:
    """The key under which an address is counted; None: it has no limit."""
    try:
        return None if ip_address(address).is_loopback else network_of(address)
    except ValueError:
        return None  # such as a server on a Unix socket
