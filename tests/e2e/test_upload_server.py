"""Uploads to the real web server: a connection that is cut, and a body much larger than the memory it may take."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from portal.models import Host
from scheduler.models import Upload
from tests.support.process_guard import descendants
from tests.support.site_process import Site
from tests.support.upload_requests import make_task, size_query, upload_body
from tests.support.upload_sockets import connect, post, received_nbytes, reply_of

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def running_site(site_var_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("uploads")
    with Site(
        site_var_dir,
        folder / "log",
        UPLOAD_SECRET=settings.UPLOAD_SECRET,
        UPLOADS_DIR=str(folder / "uploads"),
        FILES_DIR=str(folder / "files"),
        CLIENT_BODY_SECS="5",
    ) as site:
        yield site


@pytest.fixture
def upload_site(transactional_db: None, running_site: Site) -> Site:
    """The site of all these tests."""
    return running_site


def test_a_cut_connection_leaves_what_came_and_the_rest_follows(upload_site: Site, studio: Host) -> None:
    make_task("t", studio, max_nbytes=3 * MIB)
    content = os.urandom(2 * MIB)
    whole = upload_body("t_0", content, max_nbytes=3 * MIB)
    connection = connect(upload_site, len(whole))
    connection.sendall(whole[: MIB + 5])
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()
    here = received_nbytes(upload_site, "t_0")
    assert here < len(content)
    assert post(upload_site, upload_body("t_0", content, offset=here, max_nbytes=3 * MIB)) == "0"
    upload = Upload.objects.get()
    assert upload.completed_at is not None and upload.md5 == hashlib.md5(content).hexdigest()


def test_an_upload_that_comes_to_a_stop_is_ended_and_the_rest_may_follow(upload_site: Site, studio: Host) -> None:
    make_task("t", studio, max_nbytes=MIB)
    content = os.urandom(MIB)
    whole = upload_body("t_0", content, max_nbytes=MIB)
    with connect(upload_site, len(whole)) as connection:
        connection.sendall(whole[:-5])
        assert reply_of(connection) == "1 The upload was interrupted."
    assert post(upload_site, size_query("t_0")) == f"0 {MIB - 5}"
    assert post(upload_site, upload_body("t_0", content, offset=MIB - 5, max_nbytes=MIB)) == "0"


def test_a_large_upload_takes_hardly_any_memory(upload_site: Site, studio: Host) -> None:
    nbytes, chunk = 192 * MIB, bytes(MIB)
    digest = hashlib.md5()
    for _ in range(nbytes // MIB):
        digest.update(chunk)
    make_task("t", studio, max_nbytes=nbytes)
    assert post(upload_site, size_query("t_0")) == "0 0"  # everything that a first request loads is loaded
    before = peak_nbytes()
    head = upload_body("t_0", b"", nbytes=nbytes, md5=digest.hexdigest(), max_nbytes=nbytes)
    with connect(upload_site, len(head) + nbytes) as connection:
        connection.sendall(head)
        for _ in range(nbytes // MIB):
            connection.sendall(chunk)
        assert reply_of(connection) == "0"
    # A sixth of the body would be 32 MiB; what it really takes are some chunks.
    assert peak_nbytes() - before < 32 * MIB


def test_an_oversize_upload_is_told_so_although_it_is_still_sending(upload_site: Site, studio: Host) -> None:
    make_task("t", studio, max_nbytes=1000)
    assert post(upload_site, upload_body("t_0", bytes(3 * MIB), max_nbytes=1000)) == (
        "-1 The file has 3145728 bytes; the limit is 1000."
    )


def peak_nbytes() -> int:
    """The most memory that all processes below this one, the site's, have had so far, each at its own peak."""
    lines = [line for pid in descendants(os.getpid()) for line in status(pid) if line.startswith("VmHWM:")]
    assert lines
    return sum(int(line.split()[1]) * 1024 for line in lines)


def status(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/status").read_text().splitlines()
