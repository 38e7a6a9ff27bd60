"""Sending to addresses that people entered, against servers of real sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_network

import pytest
from pytest_django import Settings

from portal.fetch.errors import AddressRefused, FetchError, TimeIsUp
from portal.fetch.fetcher import FetchLimits
from portal.fetch.sender import MAX_BODY_BYTES, MAX_RETRY_SECS, PostOutcome, check_address, send
from tests.support.raw_server import RawServer, reply

SOON = FetchLimits(total_secs=0.5)


@pytest.fixture
def own_machine(settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]


def answering(*headers: str, status: str) -> Callable[[socket.socket, bytes], None]:
    return lambda connection, _request: connection.sendall(reply(b"x" * 100_000, *headers, status=status))


@pytest.mark.parametrize(
    ("status", "taken"), [("200 OK", True), ("201 Created", True), ("204 No Content", True), ("404 Not Found", False)]
)
def test_it_is_posted_as_it_is_and_the_status_is_what_comes_back(own_machine: None, status: str, taken: bool) -> None:
    with RawServer(answering(status=status)) as server:
        sent = send(f"{server.url}hook?a=1", b"\x00\xff", {"X-Secret": "s"})
    (request,) = server.requests
    assert request.startswith(b"POST /hook?a=1 HTTP/1.1\r\n") and request.endswith(b"\r\n\r\n\x00\xff")
    assert b"X-Secret: s\r\n" in request and b"User-Agent: Cobblestone (+http" in request
    assert (sent.status, sent.is_taken) == (int(status[:3]), taken)


def test_a_redirect_is_not_followed(own_machine: None) -> None:
    with RawServer(answering(status="200 OK")) as other:
        with RawServer(answering(f"Location: {other.url}", status="307 Temporary Redirect")) as server:
            sent = send(server.url, b"x", {"X-Secret": "s"})
        assert sent == PostOutcome(307) and not sent.is_taken and other.requests == []


@pytest.mark.parametrize(
    ("said", "secs"),
    [("7", 7), ("999999999", MAX_RETRY_SECS), ("1" * 50, 0), ("-1", 0), ("Mon, 01 Jan 2024 00:00:00 GMT", 0)],
)
def test_when_to_try_again_is_understood_within_limits(own_machine: None, said: str, secs: int) -> None:
    with RawServer(answering(f"Retry-After: {said}", status="429 Too Many Requests")) as server:
        assert send(server.url, b"x", {}) == PostOutcome(429, secs)


def test_a_server_that_never_answers_is_left_at_the_deadline(own_machine: None) -> None:
    with RawServer(lambda _connection, _request: server.is_over.wait(30)) as server, pytest.raises(TimeIsUp):
        send(server.url, b"x", {}, SOON)


def test_a_private_address_is_refused_before_anything_is_sent(settings: Settings) -> None:
    with RawServer(answering(status="200 OK")) as server:
        for url in (server.url, server.url.replace("127.0.0.1", "localhost"), "http://10.0.0.1/", "http://[::1]/"):
            with pytest.raises(AddressRefused):
                send(url, b"x", {}, SOON)
            with pytest.raises(AddressRefused):
                check_address(url, ("http", "https"))
        assert server.requests == []


def test_an_address_is_checked_by_scheme_and_name(own_machine: None) -> None:
    assert check_address("https://127.0.0.1:8443/x", ("https",)) == "127.0.0.1"
    for url in ("http://127.0.0.1/", "ftp://127.0.0.1/", "https://u:p@127.0.0.1/", "https://", "x" * 5000):
        with pytest.raises(AddressRefused):
            check_address(url, ("https",))
    with pytest.raises(FetchError, match="no address"):
        check_address("https://nowhere.invalid/", ("https",))


def test_too_much_is_not_sent(own_machine: None) -> None:
    with pytest.raises(ValueError, match="at most"):
        send("https://127.0.0.1/", bytes(MAX_BODY_BYTES + 1), {})


def test_a_header_cannot_end_its_line(own_machine: None) -> None:
    with RawServer(answering(status="200 OK")) as server, pytest.raises((FetchError, ValueError)):
        send(server.url, b"x", {"Title": "a\r\nX-Other: b"})
    assert server.requests == []
