"""A real S3 server on loopback, and something in front of it that breaks."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from portal.object_storage.backend import ObjectStorage
from portal.object_storage.options import Options
from tests.support.guarded_program import GuardedProgram
from tools.benchmarks.harness.server import free_port

BUCKET = "files"


class S3Server(GuardedProgram):
    """moto's server with an empty bucket."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)]
        super().__init__("the S3 server", command, folder / "s3.log", os.environ, folder)

    def answers(self) -> bool:
        address = urlsplit(self.url)
        with suppress(OSError), socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=1):
            return True
        return False

    def new_bucket(self) -> str:
        """The name of an empty bucket."""
        name = f"{BUCKET}-{uuid4().hex[:12]}"
        ObjectStorage(options(self.url, name)).client.create_bucket(Bucket=name)
        return name


def options(url: str, bucket: str, **more: Any) -> Options:
    """The settings of that server's storage."""
    given: dict[str, Any] = {
        "bucket": bucket,
        "endpoint": url,
        "public_endpoint": url,
        "region": "us-east-1",
        "prefix": "",
        "addressing": "path",
        "access_key": "an-access-key",
        "secret_key": "a-secret-key",
    }
    return Options(**{**given, **more})


def variables(url: str, bucket: str) -> dict[str, str]:
    """The same as a site's environment."""
    return {
        "FILES_STORAGE": "s3",
        "FILES_S3_BUCKET": bucket,
        "FILES_S3_ENDPOINT": url,
        "FILES_S3_ACCESS_KEY": "an-access-key",
        "FILES_S3_SECRET_KEY": "a-secret-key",
    }


def keys(storage: ObjectStorage) -> list[str]:
    """The keys of all objects."""
    found = storage.client.list_objects_v2(Bucket=storage.bucket_name)
    return [entry["Key"] for entry in found.get("Contents", ())]


class FaultyProxy:
    """A proxy to the server. ``fault``: what it does to new connections; a change of it breaks those that are open.

    "": nothing; "refuse": ends them at once; "error": answers 500; "hang": never answers; "cut": ends them in
    the first line of the answer; "cut head": behind it; "cut body": in a long answer's body.
    """

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._server = str(address.hostname), int(address.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._fault = ""
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.nconnections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def broken(self, fault: str) -> Iterator[None]:
        """Inside of the block the fault is there."""
        self._set(fault)
        try:
            yield
        finally:
            self._set("")

    def close(self) -> None:
        self._listener.close()
        self._set("refuse")

    def _set(self, fault: str) -> None:
        with self._lock:
            self._fault = fault
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            with self._lock:
                self._open.add(connection)
                self.nconnections += 1
                fault = self._fault
            threading.Thread(target=self._serve, args=(connection, fault), daemon=True).start()

    def _serve(self, connection: socket.socket, fault: str) -> None:
        faults: dict[str, Callable[[socket.socket], None]] = {"refuse": _refuse, "error": _answer_error, "hang": _hang}
        with connection, suppress(OSError):
            if fault in faults:
                faults[fault](connection)
            else:
                with socket.create_connection(self._server) as server:
                    with self._lock:
                        self._open.add(server)
                    threading.Thread(target=_copy, args=(connection, server, None), daemon=True).start()
                    _copy(server, connection, {"cut": 5, "cut head": 40, "cut body": 2000}.get(fault))
                    with self._lock:
                        self._open.discard(server)
        with self._lock:
            self._open.discard(connection)


def _refuse(_: socket.socket) -> None:
    return


def _hang(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def _answer_error(connection: socket.socket) -> None:
    connection.recv(65536)
    body = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
    head = f"HTTP/1.1 500 Internal Server Error\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    connection.sendall(head.encode() + body)
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(65536):
        pass


def _copy(source: socket.socket, target: socket.socket, most_nbytes: int | None) -> None:
    with suppress(OSError):
        sent = 0
        while data := source.recv(65536):
            if most_nbytes is not None:
                data = data[: most_nbytes - sent]
            if not data:
                break
            target.sendall(data)
            sent += len(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
