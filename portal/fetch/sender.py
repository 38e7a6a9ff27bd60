"""Sends something to an address that a person entered, such as an alert to a webhook, and reads only its status.

The same rules as for fetching (`portal.fetch.fetcher`): no address inside private networks, a deadline. No redirect is
followed: what is sent contains a secret or a signature, which is for this address alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.conf import settings
from urllib3.connection import HTTPConnection
from urllib3.util import Url

from portal.fetch.connections import FetchDeadline, look_up
from portal.fetch.errors import AddressRefused
from portal.fetch.fetcher import FetchLimits, host_of, over_connection, own_headers, parse_address

MAX_BODY_BYTES: Final = 1 << 16
MAX_RETRY_SECS: Final = 86_400
SEND_LIMITS: Final = FetchLimits(total_secs=10.0, read_secs=8.0)
LOOK_UP_SECS: Final = 3.0
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """The server's answer. ``status``: of HTTP. ``retry_secs``: its Retry-After, 0 if it sent none."""

    status: int
    retry_secs: int = 0

    @property
    def is_taken(self) -> bool:
        return 200 <= self.status < 300


def send(url: str, body: bytes, headers: Mapping[str, str], limits: FetchLimits = SEND_LIMITS) -> PostOutcome:
    """Post ``body``. Blocks, so do not call it in a transaction. Raises FetchError, but not for any HTTP status.

    The answer's body is not read.
    """
    if len(body) > MAX_BODY_BYTES:
        raise ValueError(f"a body may have at most {MAX_BODY_BYTES} bytes")
    target = parse_address(url)
    deadline = FetchDeadline(settings.FETCH_TIMEOUT_SECS if limits.total_secs is None else limits.total_secs)
    return over_connection(target, limits, deadline, partial(_post, target, body, {**headers, **own_headers()}))


def _post(url: Url, body: bytes, headers: Mapping[str, str], connection: HTTPConnection) -> PostOutcome:
    connection.request("POST", url.request_uri, body=body, headers=headers, preload_content=False, decode_content=False)
    with closing(connection.getresponse()) as response:
        return PostOutcome(response.status, _retry_secs(response.headers.get("Retry-After", "")))


def _retry_secs(text: str) -> int:
    """Parse seconds; a date, which the field may have too, counts as 0."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= 9
    return min(int(text), MAX_RETRY_SECS) if is_number else 0


def check_address(url: str, schemes: tuple[str, ...]) -> str:
    """Return the host of an address that may be sent to. Raises FetchError, at once for a private address.

    It looks the name up, which may take LOOK_UP_SECS. A name's addresses may change, so they are checked each time.
    """
    target = parse_address(url)
    host = host_of(target)
    if target.scheme not in schemes:
        raise AddressRefused(host, "fetch_other_scheme", schemes=[f"{scheme}://" for scheme in schemes])
    port = target.port or _DEFAULT_PORTS[target.scheme]
    look_up(host, port, settings.FETCH_ALLOWED_NETWORKS, FetchDeadline(LOOK_UP_SECS))
    return host
