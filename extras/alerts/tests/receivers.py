"""Receivers of alerts: an encrypted server on this machine, and channels that lead to it."""

from __future__ import annotations

import socket
import ssl
from email.message import Message
from email.parser import BytesHeaderParser

from extras.alerts import channels
from extras.alerts.kinds.push import parse_subscription
from extras.alerts.kinds.webhook import new_secret
from extras.alerts.models import AlertChannel
from extras.alerts.wire import Destination
from portal.models import User
from tests.support.push_browser import PushBrowser
from tests.support.raw_server import RawServer, reply

HOST = "127.0.0.2"
"""The name of the certificate."""


class Receiver(RawServer):
    """Answers each request with the next of the given statuses, and repeats the last one."""

    def __init__(self, tls: ssl.SSLContext, *statuses: str) -> None:
        self._statuses = list(statuses or ["200 OK"])
        super().__init__(self._next, host=HOST, tls=tls)

    def _next(self, connection: socket.socket, _request: bytes) -> None:
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        connection.sendall(reply(b"", status=status))

    def received(self) -> list[tuple[Message, bytes]]:
        """Return headers and bodies of the requests."""
        found = []
        for request in self.requests:
            head, _, body = request.partition(b"\r\n\r\n")
            found.append((BytesHeaderParser().parsebytes(head.partition(b"\r\n")[2]), body))
        return found


def silent_server(tls: ssl.SSLContext) -> RawServer:
    """Accept requests, and never answer."""

    def wait(_connection: socket.socket, _request: bytes) -> object:
        return server.is_over.wait(60)

    server = RawServer(wait, host=HOST, tls=tls)
    return server


def add_webhook(user: User, url: str, secret: str = "") -> AlertChannel:
    return channels.add(user, "webhook", "hook", HOST, Destination(url, key=secret or new_secret()))


def add_ntfy(user: User, url: str, token: str = "") -> AlertChannel:
    return channels.add(user, "ntfy", "phone", HOST, Destination(url, token=token))


def add_browser(user: User, url: str, browser: PushBrowser) -> AlertChannel:
    return channels.add(user, "push", "Firefox 128", HOST, parse_subscription(browser.subscription(url)))
