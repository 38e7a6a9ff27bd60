"""A server of real sockets that answers as a test wants, also as no proper server would."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Answer = Callable[[socket.socket, bytes], object]
"""Is given the connection and the head of the request, with the body as far as it came."""


def reply(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A whole reply."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def by_path(**answers: bytes) -> Answer:
    """Sends for "/name" what is given for the name, and 404 for all else."""

    def answer(connection: socket.socket, request: bytes) -> None:
        name = path_of(request).partition("?")[0].rpartition("/")[2].partition(".")[0]
        connection.sendall(answers.get(name) or reply(b"", status="404 Not Found"))

    return answer


def path_of(request: bytes) -> str:
    return request.split(b" ")[1].decode()


class RawServer:
    """Listens while the context lasts; one thread for each connection. ``requests``: what came, in order."""

    def __init__(self, answer: Answer, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.port: int = self._listener.getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if tls else 'http'}://{name}:{self.port}/"
        self.requests: list[bytes] = []
        # Is set at the end: answers that take for ever wait for it.
        self.is_over = threading.Event()

    def __enter__(self) -> Self:
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.is_over.set()
        # Wakes the thread that waits for connections; closing alone does not.
        self._listener.shutdown(socket.SHUT_RDWR)
        # Closed too early, its number may be the next test's listener when the thread asks for a connection: this
        # server would answer that test.
        self._accepting.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self.is_over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                plain = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
                with plain:
                    request = self._read(plain)
                    if request:
                        self.requests.append(request)
                        self._answer(plain, request)
        except OSError:
            pass  # The other side went away, as it does when a limit is reached.

    @staticmethod
    def _read(connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (part := connection.recv(1 << 16)):
                return data
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                while len(body) < int(value) and (part := connection.recv(1 << 16)):
                    body += part
        return head + b"\r\n\r\n" + body
