"""A mail server over real sockets, which refuses some recipients."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType
from typing import Self

from pytest_django import Settings


class MailServer:
    """Takes mails while the context lasts. ``refused``: the reply to each recipient that it does not take, such as
    "450 try again later"; ``taken``: the recipients of the mails that it took, in order.
    """

    def __init__(self, settings: Settings) -> None:
        self.refused: dict[str, str] = {}
        self.taken: list[str] = []
        outer = self

        class Session(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                outer._talk(self)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)
        self._server.daemon_threads = True
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _talk(self, session: socketserver.StreamRequestHandler) -> None:
        def say(text: str) -> None:
            session.wfile.write(f"{text}\r\n".encode())

        recipients: list[str] = []
        say("220 ready")
        for raw in session.rfile:
            verb = raw[:4].upper()
            if verb == b"RCPT":
                address = raw.decode().partition("<")[2].partition(">")[0]
                say(self.refused.get(address, "250 ok"))
                recipients += [address] if address not in self.refused else []
            elif verb == b"DATA":
                say("354 go on")
                while session.rfile.readline() not in (b".\r\n", b""):
                    pass
                self.taken += recipients
                recipients = []
                say("250 taken")
            elif verb == b"QUIT":
                say("221 bye")
                return
            else:
                say("250 ok")
