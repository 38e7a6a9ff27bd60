"""Uploads to a running site on sockets of their own."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from tests.support.site_process import Site
from tests.support.upload_requests import ADDRESS, address_of, read_reply


def connect(site: Site, length: int, path: str = ADDRESS) -> socket.socket:
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


def post(site: Site, body: bytes) -> str:
    with connect(site, len(body), address_of(body)) as connection:
        connection.sendall(body)
        return reply_of(connection)
