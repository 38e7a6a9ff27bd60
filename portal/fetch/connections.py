"""Connections to checked addresses: a name is looked up once, and only the checked addresses are used.

So a name server cannot change its answer between the check and the connection. A connection ends at a deadline,
whatever the other side does: limits on each read alone would let a server send a byte now and then for ever.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Final, Self

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import Url

from portal.fetch.addresses import Network, is_allowed
from portal.fetch.errors import AddressRefused, FetchError, TimeIsUp

MAX_ADDRESSES: Final = 8
"""How many addresses of one name are tried."""

SocketAddress = tuple[socket.AddressFamily, tuple[Any, ...]]
"""An address as `socket.connect` takes it."""


class FetchDeadline:
    """The time by which a request has to be done."""

    def __init__(self, secs: float) -> None:
        self.secs = secs
        self._ends = time.monotonic() + secs

    def left(self, host: str) -> float:
        """Return the seconds left. Raises TimeIsUp if there are none."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise self.passed(host)
        return left

    def passed(self, host: str) -> TimeIsUp:
        return TimeIsUp(host, "fetch_time_limit", secs=self.secs)


def look_up(host: str, port: int, allowed: Sequence[Network], deadline: FetchDeadline) -> list[SocketAddress]:
    """Look up and check all addresses of a name. One that is not allowed makes the whole name unusable."""
    addresses: list[SocketAddress] = []
    for family, sockaddr in _resolve(host, port, deadline):
        address = ip_address(str(sockaddr[0]))
        if not is_allowed(address, allowed):
            raise AddressRefused(host, "fetch_not_public", address=address)
        addresses.append((family, sockaddr))
    return addresses[:MAX_ADDRESSES]


def _resolve(host: str, port: int, deadline: FetchDeadline) -> list[SocketAddress]:
    """Look up a name in a thread, as the resolver has its own time limits, which may be long."""
    answers: queue.SimpleQueue[list[SocketAddress] | OSError | ValueError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put([(family, sockaddr) for family, _, _, _, sockaddr in rows])
        except (OSError, ValueError) as error:
            # ValueError: the text cannot be a name
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=deadline.left(host))
    except queue.Empty:
        raise deadline.passed(host) from None
    if isinstance(answer, Exception):
        raise FetchError(host, "fetch_unknown_host") from answer
    return answer


def connect(
    host: str, addresses: Sequence[SocketAddress], connect_secs: float, deadline: FetchDeadline
) -> socket.socket:
    """Connect to the first of the addresses that answers."""
    problem: OSError | None = None
    for family, sockaddr in addresses:
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            # This machine does not have that kind of address, such as IPv6 where it is switched off.
            problem = error
            continue
        try:
            sock.settimeout(min(connect_secs, deadline.left(host)))
            sock.connect(sockaddr)
        except OSError as error:
            sock.close()
            problem = error
        except TimeIsUp:
            sock.close()
            raise
        else:
            return sock
    if isinstance(problem, TimeoutError):
        raise TimeIsUp(host, "fetch_connect_limit", secs=connect_secs) from problem
    raise FetchError(host, "fetch_no_connection") from problem


class _Plain(HTTPConnection):
    """HTTP over a socket that is connected already."""

    connected: socket.socket

    def _new_conn(self) -> socket.socket:
        return self.connected


class _Encrypted(HTTPSConnection):
    """HTTPS over a socket that is connected already; the certificate has to match the host's name."""

    connected: socket.socket

    def _new_conn(self) -> socket.socket:
        return self.connected


def http_connection(url: Url, sock: socket.socket, read_secs: float) -> HTTPConnection:
    """HTTP over the socket, encrypted if the address says so, with this system's certificates."""
    host = (url.host or "").strip("[]")
    made: _Plain | _Encrypted
    if url.scheme == "https":
        made = _Encrypted(host, url.port, timeout=read_secs, ssl_context=ssl.create_default_context())
    else:
        made = _Plain(host, url.port, timeout=read_secs)
    made.connected = sock
    sock.settimeout(read_secs)
    return made


class EndedInTime:
    """Ends a connection at the deadline, whatever call it is in; ``has_ended`` says that it did."""

    def __init__(self, sock: socket.socket, secs: float) -> None:
        self.has_ended = False
        # Encryption takes the socket over. A copy ends the same connection.
        self._copy = sock.dup()
        # The file descriptor of a socket that was closed meanwhile may belong to another connection.
        self._lock = threading.Lock()
        self._timer = threading.Timer(secs, self._end)
        self._timer.daemon = True

    def _end(self) -> None:
        with self._lock, suppress(OSError):
            self.has_ended = True
            self._copy.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        with self._lock:
            self._copy.close()
