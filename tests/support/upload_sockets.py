"""Uploads to a running site on sockets of their own."""

from __future__ import annotations

import socket
from typing import Protocol
from urllib.parse import urlsplit

from tests.support.upload_requests import ADDRESS, address_of, read_reply, size_query
from tests.support.wait import wait_until


class Server(Protocol):
    """A site, or a proxy in front of several."""

    url: str


def connect(site: Server, length: int, path: str = ADDRESS) -> socket.socket:
    """A connection on which the head of a POST was sent."""
    address = urlsplit(site.url)
    assert address.hostname and address.port
    connection = socket.create_connection((address.hostname, address.port), timeout=60)
    head = f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def reply_of(connection: socket.socket) -> str:
    """As `tests.support.upload_requests.read_reply`; ConnectionError if the site ended the connection without one."""
    answer = b""
    while chunk := connection.recv(65536):
        answer += chunk
    if not answer:
        raise ConnectionResetError("no reply")
    return read_reply(answer.partition(b"\r\n\r\n")[2])


def post(site: Server, body: bytes) -> str:
    with connect(site, len(body), address_of(body)) as connection:
        connection.sendall(body)
        return reply_of(connection)


def received_nbytes(site: Server, name: str, more_than: int = 0) -> int:
    """How much has arrived of a file whose connection was cut, when no more of it comes."""
    sizes = [0]

    def is_steady() -> bool:
        status, size = post(site, size_query(name)).split()
        assert status == "0"
        sizes.append(int(size))
        return more_than < sizes[-2] == sizes[-1]

    wait_until(is_steady, "the first part to be counted", 20)
    return sizes[-1]
