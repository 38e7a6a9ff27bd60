"""Fetches from other servers; no other module opens addresses that people entered.

http and https only, no address inside private networks (`addresses`), few redirects, each checked again. Limits on
time, on the bytes that are transferred and on the bytes that come out of compression. No proxy, cookie or login.
"""

from __future__ import annotations

import re
import ssl
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from typing import BinaryIO, Final, TypeVar
from urllib.parse import urljoin

from django.conf import settings
from urllib3 import BaseHTTPResponse
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Url, parse_url

from portal.fetch.connections import EndedInTime, FetchDeadline, connect, http_connection, look_up
from portal.fetch.errors import AddressRefused, FetchError, NotStored, StatusError, TimeIsUp, TooLarge

MAX_URL_CHARS: Final = 4096
_CHUNK_BYTES: Final = 1 << 16
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PART: Final = 206
_UNCHANGED: Final = 304
_RANGE: Final = re.compile(r"bytes (\d{1,18})-\d{1,18}/(?:\d{1,18}|\*)", re.ASCII)
_PORTS: Final = {"http": 80, "https": 443}
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of a fetch. ``wire_bytes``: as transferred; ``body_bytes``: after decompression; ``total_secs``:
    FETCH_TIMEOUT_SECS if None.

    ``redirects``: how many are followed. A request with data follows none.
    """

    wire_bytes: int = 1 << 20
    body_bytes: int = 2 << 20
    connect_secs: float = 5.0
    read_secs: float = 10.0
    total_secs: float | None = None
    redirects: int = 3


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a document that the caller has, as its server named it; empty: it did not."""

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is stored as it is transferred, so that an interrupted download can be resumed.

    ``file``: open for writing, at its end; it has ``nbytes`` of ``version`` already. Only a version with a strong ETag
    is resumed; all others start again. ``begin`` is called with a new version before its first byte is written.
    """

    file: BinaryIO
    nbytes: int
    version: Version
    begin: Callable[[Version], None]

    @property
    def goes_on(self) -> bool:
        return self.nbytes > 0 and self.version.etag.startswith('"')


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer. ``url``: its address, after redirects. ``body`` is empty if it went to a file, or is unchanged."""

    url: str
    body: bytes
    nbytes: int
    version: Version
    is_unchanged: bool = False


DEFAULT_LIMITS: Final = FetchLimits()


def fetch(
    url: str,
    *,
    data: bytes | None = None,
    into: BinaryIO | Download | None = None,
    known: Version | None = None,
    limits: FetchLimits = DEFAULT_LIMITS,
) -> Fetched:
    """Fetch the document at ``url``. Blocks, so do not call it in a transaction. Raises FetchError.

    ``data`` is sent by POST, as XML. ``into``: where the body goes; after an error it has a part of it. A `Download` is
    not decompressed. ``known``: the caller's version, for ``is_unchanged``.
    """
    deadline = FetchDeadline(settings.FETCH_TIMEOUT_SECS if limits.total_secs is None else limits.total_secs)
    target = parse_address(url)
    for _ in range(limits.redirects + 1):
        answer = _ask(target, data, into, known, limits, deadline)
        if isinstance(answer, Fetched):
            return answer
        target = _next_target(target, answer, is_post=data is not None)
    raise FetchError(host_of(target), "fetch_redirects", limit=limits.redirects)


def parse_address(url: str) -> Url:
    """The address in its normal form. Raises AddressRefused for one that the site does not ask."""
    if len(url) > MAX_URL_CHARS:
        raise AddressRefused("", "fetch_address_too_long", limit=MAX_URL_CHARS)
    try:
        url_parts = parse_url(url.strip())
    except LocationParseError:
        raise AddressRefused("", "fetch_no_address") from None
    host = host_of(url_parts)
    if url_parts.scheme not in _PORTS or not host:
        raise AddressRefused(host, "fetch_scheme")
    if url_parts.auth is not None:
        raise AddressRefused(host, "fetch_login_in_address")
    if url_parts.port == 0:
        raise AddressRefused(host, "fetch_port_zero")
    return url_parts


def host_of(url: Url) -> str:
    """The host of an address, without the brackets of IPv6."""
    return (url.host or "").strip("[]")


def _next_target(asked: Url, location: str, *, is_post: bool) -> Url:
    if is_post:
        raise FetchError(host_of(asked), "fetch_redirected_post")
    try:
        target = parse_address(urljoin(asked.url, location))
    except ValueError:
        raise AddressRefused(host_of(asked), "fetch_redirected_nowhere") from None
    if asked.scheme == "https" and target.scheme == "http":
        raise AddressRefused(host_of(asked), "fetch_redirected_to_http")
    return target


def _ask(
    url: Url,
    data: bytes | None,
    into: BinaryIO | Download | None,
    known: Version | None,
    limits: FetchLimits,
    deadline: FetchDeadline,
) -> Fetched | str:
    """Ask one address; return the answer, or the address that it redirects to."""
    return over_connection(url, limits, deadline, partial(_exchange, url, data, into, known, limits))


def over_connection(
    url: Url, limits: FetchLimits, deadline: FetchDeadline, exchange: Callable[[HTTPConnection], Answer]
) -> Answer:
    """Call ``exchange`` with a connection to this address, which is checked, and ended at the deadline."""
    host = host_of(url)
    port = url.port or _PORTS[url.scheme or ""]
    addresses = look_up(host, port, settings.FETCH_ALLOWED_NETWORKS, deadline)
    sock = connect(host, addresses, limits.connect_secs, deadline)
    with sock, EndedInTime(sock, deadline.left(host)) as watch:
        connection = http_connection(url, sock, limits.read_secs)
        try:
            answer = exchange(connection)
        except (HTTPError, HTTPException, OSError, zlib.error, ValueError) as error:
            # ValueError: http.client's error for malformed numbers
            if watch.has_ended:
                raise deadline.passed(host) from error
            raise _problem(host, error, limits) from error
        finally:
            connection.close()
    if watch.has_ended:
        # To a reader, a connection that ends looks like the end of an answer without a length.
        raise deadline.passed(host)
    return answer


def _problem(host: str, error: Exception, limits: FetchLimits) -> FetchError:
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return TimeIsUp(host, "fetch_read_limit", secs=limits.read_secs)
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or next(
            (argument for argument in cause.args if isinstance(argument, BaseException)), None
        )
    if isinstance(cause, ssl.SSLCertVerificationError):
        return FetchError(host, "fetch_certificate", why=cause.verify_message)
    if cause is not None:
        return FetchError(host, "fetch_no_encryption")
    if isinstance(error, zlib.error):
        return FetchError(host, "fetch_damaged")
    return FetchError(host, "fetch_broken")


def _exchange(
    url: Url,
    data: bytes | None,
    into: BinaryIO | Download | None,
    known: Version | None,
    limits: FetchLimits,
    connection: HTTPConnection,
) -> Fetched | str:
    connection.request(
        "GET" if data is None else "POST",
        url.request_uri,
        body=data,
        headers=_headers(data, into, known),
        preload_content=False,
        decode_content=False,
        enforce_content_length=True,
    )
    with closing(connection.getresponse()) as response:
        return _read(response, url, into, known, limits)


def _read(
    response: BaseHTTPResponse, url: Url, into: BinaryIO | Download | None, known: Version | None, limits: FetchLimits
) -> Fetched | str:
    host = host_of(url)
    location = response.headers.get("Location", "")
    if response.status in _REDIRECTS and location:
        return location
    if response.status == _UNCHANGED and known is not None:
        return Fetched(url.url, b"", 0, known, is_unchanged=True)
    version = Version(_storable_header(response, "ETag", 200), _storable_header(response, "Last-Modified", 60))
    if isinstance(into, Download):
        nbytes = _save(response, host, into, version, limits)
        return Fetched(url.url, b"", nbytes, version)
    if response.status != 200:
        raise StatusError(host, response.status)
    body = bytearray()
    nbytes = 0
    for piece in _pieces(response, host, limits):
        nbytes += len(piece)
        if nbytes > limits.body_bytes:
            raise TooLarge(host, "fetch_body_limit", limit_nbytes=limits.body_bytes)
        if into is None:
            body += piece
        else:
            with _writing(host):
                into.write(piece)
    return Fetched(url.url, bytes(body), nbytes, version)


def _save(response: BaseHTTPResponse, host: str, download: Download, version: Version, limits: FetchLimits) -> int:
    """Append the body to the file, or replace it, as transferred; return the file's size."""
    if response.status == _PART and download.goes_on:
        there = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if there is None or int(there[1]) != download.nbytes or version.etag != download.version.etag:
            raise FetchError(host, "fetch_other_part")
        nbytes = download.nbytes
    elif response.status == 200:
        with _writing(host):
            download.file.seek(0)
            download.file.truncate()
            download.begin(version)
        nbytes = 0
    else:
        raise StatusError(host, response.status)
    while piece := response.read1(_CHUNK_BYTES):
        nbytes += len(piece)
        if nbytes > limits.wire_bytes:
            raise TooLarge(host, "fetch_wire_limit", limit_nbytes=limits.wire_bytes)
        with _writing(host):
            download.file.write(piece)
    return nbytes


@contextmanager
def _writing(host: str) -> Iterator[None]:
    """Report an error in writing as ours, not the server's."""
    try:
        yield
    except OSError as error:
        raise NotStored(host, "fetch_not_stored", why=error.strerror) from error


def _storable_header(response: BaseHTTPResponse, name: str, max_chars: int) -> str:
    """A header that is stored and sent back; empty if it is not fit for that."""
    text = response.headers.get(name, "")
    return text if len(text) <= max_chars and text.isascii() and text.isprintable() else ""


def own_headers() -> dict[str, str]:
    """The headers of every request of this site."""
    return {"User-Agent": f"Cobblestone (+{settings.SITE_URL})", "Connection": "close"}


def _headers(data: bytes | None, into: BinaryIO | Download | None, known: Version | None) -> dict[str, str]:
    headers = {**own_headers(), "Accept-Encoding": "gzip"}
    if data is not None:
        headers["Content-Type"] = "text/xml"
    if isinstance(into, Download):
        headers["Accept-Encoding"] = "identity"
        if into.goes_on and known is None:
            headers |= {"Range": f"bytes={into.nbytes}-", "If-Range": into.version.etag}
    if known is not None and known.etag:
        headers["If-None-Match"] = known.etag
    if known is not None and known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    return headers


def _pieces(response: BaseHTTPResponse, host: str, limits: FetchLimits) -> Iterator[bytes]:
    """The body, decompressed, in pieces of limited size: a small answer may stand for gigabytes of zeros."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise FetchError(host, "fetch_compression")
    is_packed = encoding.endswith("gzip")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    wire_bytes = 0
    while raw := response.read1(_CHUNK_BYTES):
        wire_bytes += len(raw)
        if wire_bytes > limits.wire_bytes:
            raise TooLarge(host, "fetch_wire_limit", limit_nbytes=limits.wire_bytes)
        if not is_packed:
            yield raw
            continue
        is_more = True
        while is_more:
            if inflate.eof:
                # gzip files may have several members.
                inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
            piece = inflate.decompress(raw, _CHUNK_BYTES)
            yield piece
            raw = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            # A full piece may have left output behind although all input was taken.
            is_more = bool(raw) or (not inflate.eof and len(piece) == _CHUNK_BYTES)
    if is_packed and wire_bytes and not inflate.eof:
        raise FetchError(host, "fetch_cut_off")
