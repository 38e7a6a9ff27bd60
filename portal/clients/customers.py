"""A limit on the requests that one customer has under way: an IPv4 address, or an IPv6 network (/64)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from ipaddress import ip_address

from portal.people.throttle import network_of


class CustomerLimit:
    """``most`` requests at once for each customer. This machine itself, where a proxy or an operator is, has none."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def place(self, address: str) -> Iterator[bool]:
        """Whether the request may be answered; it counts until the end of the block."""
        customer = _customer(address)
        if customer is None:
            yield True
        elif self._under_way[customer] >= self._most:
            yield False
        else:
            self._under_way[customer] += 1
            try:
                yield True
            finally:
                self._under_way[customer] -= 1
                if not self._under_way[customer]:
                    del self._under_way[customer]


@lru_cache(maxsize=4096)
def _customer(address: str) -> str | None:
    """None: without a limit."""
    try:
        return None if ip_address(address).is_loopback else network_of(address)
    except ValueError:
        return None  # a server on a Unix socket, say
