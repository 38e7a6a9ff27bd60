"""Thousands of connections on which hardly anything comes, and pages that wait: others are answered all the same."""

from __future__ import annotations

import os
import select
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import pytest
from django.db import connection, transaction

from portal.clients.pages import THREADS
from scheduler.models import StoredFile
from tests.support import open_files
from tests.support.site_process import Site
from tests.support.wait import wait_until

NSOCKETS: Final = 2_000
MOST_SECS: Final = 60
"""By then each of them is to be ended; that is three times what is asked of the site."""
LARGE_NBYTES: Final = 12 * 1024 * 1024
PATHS: Final = ("/project/file_upload_handler", "/rpc.php", "/project/scheduler", "/account/login/")


class Way(NamedTuple):
    """To be slow. ``begins``: what is sent at once; ``trickles``: whether a byte follows every second."""

    begins: bytes
    trickles: bool = False


def head(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n".encode()


WAYS: Final = (
    Way(b""),
    Way(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),  # is answered, and then says nothing more
    *[Way(b"POST /rpc.php HTTP/1.1\r\nHost: loc", trickles) for trickles in (False, True)],
    *[Way(head(path), trickles) for path in PATHS for trickles in (False, True)],
)


class Crowd:
    """This many connections to the site, by turns in each of WAYS; a context manager.

    ``replies``: what came on those that the server has ended.
    """

    def __init__(self, site: Site, nsockets: int) -> None:
        self._site = site
        self._nsockets = nsockets
        self._poll = select.epoll()
        self._open: dict[int, tuple[socket.socket, Way]] = {}
        self._came: dict[int, bytes] = {}
        self.replies: list[bytes] = []

    def __enter__(self) -> Crowd:
        for number in range(self._nsockets):
            way = WAYS[number % len(WAYS)]
            slow = connect(self._site)
            slow.sendall(way.begins)
            self._open[slow.fileno()] = slow, way
            self._came[slow.fileno()] = b""
            self._poll.register(slow, select.EPOLLIN)
        return self

    def __exit__(self, *_raised: object) -> None:
        for slow, _ in self._open.values():
            slow.close()
        self._poll.close()

    @property
    def nopen(self) -> int:
        return len(self._open)

    def go_on(self) -> None:
        """A second in which bytes trickle, and the server may end connections."""
        for slow, way in self._open.values():
            if way.trickles:
                try:
                    slow.send(b"x")
                except ConnectionError:
                    continue  # its end is noted below
        end = time.monotonic() + 1
        while (left := end - time.monotonic()) > 0:
            for number, _ in self._poll.poll(left):
                self._receive(number)

    def _receive(self, number: int) -> None:
        slow, _ = self._open[number]
        try:
            part = slow.recv(65536)
        except ConnectionError:
            part = b""
        self._came[number] += part
        if not part:
            self._poll.unregister(slow)
            slow.close()
            del self._open[number]
            self.replies.append(self._came.pop(number))


@pytest.fixture
def files_enough() -> Iterator[None]:
    with open_files.files_enough(4 * NSOCKETS):
        yield


def connect(site: Site) -> socket.socket:
    address = urlsplit(site.url)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def status_of(site: Site, path: str, body: bytes | None = None) -> int:
    try:
        with urllib.request.urlopen(site.url.rstrip("/") + path, data=body, timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_slow_clients_keep_nobody_from_being_answered_and_are_ended(
    files_enough: None, transactional_db: None, site_var_dir: Path, tmp_path: Path
) -> None:
    with Site(site_var_dir, tmp_path / "log", CLIENT_BODY_SECS="15") as site, Crowd(site, NSOCKETS) as crowd:
        crowd.go_on()
        asked = (("/healthz", None), ("/account/login/", None), ("/rpc.php", b"<acct_mgr_request>"))
        assert [status_of(site, path, body) for path, body in asked] == [200, 200, 200]
        crowd.go_on()
        assert crowd.nopen == NSOCKETS
        for _ in range(MOST_SECS):
            if crowd.nopen:
                crowd.go_on()
        assert crowd.nopen == 0
    # Uploads, which go on another time, are told to try again.
    first_lines = {reply.partition(b"\r\n")[0] for reply in crowd.replies}
    assert first_lines == {b"", b"HTTP/1.1 200 OK", b"HTTP/1.1 408 Request Timeout"}


def test_clients_are_answered_while_every_page_waits(
    transactional_db: None, site_var_dir: Path, tmp_path: Path
) -> None:
    cookie = b"Cookie: sessionid=" + b"a" * 32
    page = b"GET /account/login/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + cookie + b"\r\n\r\n"
    with Site(site_var_dir, tmp_path / "log") as site, ExitStack() as stack:
        pages = [stack.enter_context(connect(site)) for _ in range(THREADS + 10)]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE portal_session")
            for each in pages:
                each.sendall(page)

            def is_busy() -> bool:
                cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                return bool(cursor.fetchone()[0] >= THREADS)

            wait_until(is_busy, "all pages' threads to wait", 30)
            assert status_of(site, "/rpc.php", b"<acct_mgr_request>") == 200
            assert status_of(site, "/project/scheduler", b"<scheduler_request>") == 200
            assert status_of(site, "/project/file_upload_handler", b"<get_file_size>none_0</get_file_size>\n") == 200
        for each in pages:
            assert each.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_pages_are_answered_while_many_read_a_large_file_slowly(
    transactional_db: None, site_var_dir: Path, tmp_path: Path
) -> None:
    """Three times as many as there are threads ask for it and do not read on; without nginx in front."""
    files = tmp_path / "files"
    files.mkdir()
    content = os.urandom(LARGE_NBYTES)
    (files / "a program").write_bytes(content)
    StoredFile.objects.create(name="program", path="a program", nbytes=LARGE_NBYTES, md5="0" * 32)
    address = "/project/download/program"
    request = f"GET {address} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    with Site(site_var_dir, tmp_path / "log", FILES_DIR=str(files), CLIENT_BODY_SECS="5") as site, ExitStack() as stack:
        readers = [stack.enter_context(connect(site)) for _ in range(3 * THREADS)]
        for reader in readers:
            reader.sendall(request)
        for reader in readers:
            assert reader.recv(12) == b"HTTP/1.1 200"
        assert status_of(site, "/account/login/") == 200
        with urllib.request.urlopen(site.url.rstrip("/") + address, timeout=60) as reply:
            assert reply.read() == content
        # The others are cut off: what is still on its way to them is less than the file.
        # Not reading for this long is the test: much longer than CLIENT_BODY_SECS and the 8 s that a part needs at
        # 2,000 bytes a second.
        time.sleep(30)
        assert max(received(reader) for reader in readers) < LARGE_NBYTES


def received(reader: socket.socket) -> int:
    """How many bytes come until the end of the connection."""
    nbytes = 0
    try:
        while part := reader.recv(1 << 20):
            nbytes += len(part)
    except ConnectionError:
        pass
    return nbytes
