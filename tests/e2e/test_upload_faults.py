"""Output files that were acknowledged are there, whole: one file from many sides at once, and killed servers."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import Settings

from credit.models import App
from portal.models import Host
from scheduler.files import check
from scheduler.models import Upload
from tests.support.credit_factories import make_app
from tests.support.site_process import Site
from tests.support.upload_requests import make_task, size_query, upload_body
from tests.support.upload_sockets import connect, post
from tests.support.wait import wait_until

MAX_NBYTES = 2**20
THREADS = 4
KILLS = 2
# granian takes a process that ends twice within six seconds for one that cannot start, and gives up.
SECS_BETWEEN_KILLS = 3.5
PATIENCE_SECS = 60


@pytest.fixture
def two_processes(transactional_db: None, site_var_dir: Path, tmp_path: Path, settings: Settings) -> Iterator[Site]:
    """A site with two processes; the test looks into its storage."""
    settings.UPLOADS_DIR, settings.MEDIA_ROOT = tmp_path / "uploads", tmp_path / "files"
    folders = {"UPLOADS_DIR": str(settings.UPLOADS_DIR), "FILES_DIR": str(settings.MEDIA_ROOT)}
    with Site(
        site_var_dir, tmp_path / "log", UPLOAD_SECRET=settings.UPLOAD_SECRET, GRANIAN_WORKERS="2", **folders
    ) as site:
        yield site


@pytest.fixture
def app(transactional_db: None) -> App:
    return make_app("uploads")


def check_all_are_there(names: set[str]) -> None:
    """Each was acknowledged."""
    assert set(Upload.objects.exclude(completed_at=None).values_list("name", flat=True)) >= names
    assert list(check.differences()) == []


@pytest.mark.parametrize(("nfiles", "nat_once"), [(3, 60), pytest.param(10, 8, marks=pytest.mark.long)])
def test_one_file_that_is_uploaded_many_times_at_once_is_there(
    two_processes: Site, studio: Host, app: App, nfiles: int, nat_once: int
) -> None:
    for number in range(nfiles):
        make_task(f"t{number}", studio, app=app, max_nbytes=MAX_NBYTES)
    with ThreadPoolExecutor(nat_once) as pool:
        for number in range(nfiles):
            body = upload_body(f"t{number}_0", os.urandom(1000 + 40_000 * (number % 3)), max_nbytes=MAX_NBYTES)
            begin = threading.Barrier(nat_once)

            def send(body: bytes = body, begin: threading.Barrier = begin) -> str:
                begin.wait()
                return post(two_processes, body)

            replies = [sent.result() for sent in [pool.submit(send) for _ in range(nat_once)]]
            assert "0" in replies
            assert {reply[:2].strip() for reply in replies} <= {"0", "1"}, replies
    check_all_are_there({f"t{number}_0" for number in range(nfiles)})
    assert [path for path in Path(settings.UPLOADS_DIR).rglob("*") if path.is_file()] == []


def test_what_was_acknowledged_is_there_although_servers_were_killed(
    two_processes: Site, studio: Host, app: App
) -> None:
    nfiles = 400
    for number in range(nfiles):
        make_task(f"t{number}", studio, app=app, max_nbytes=MAX_NBYTES)
    waiting = [f"t{number}_0" for number in range(nfiles)]
    acknowledged: set[str] = set()
    over = threading.Event()

    def work(number: int) -> None:
        dice = random.Random(number)
        while waiting and not over.is_set():
            name = waiting.pop()
            upload_until_acknowledged(two_processes, name, dice)
            acknowledged.add(name)

    def kill() -> None:
        try:
            for _ in range(KILLS):
                # The load goes on meanwhile; the pause is what granian wants between two ends of one process.
                time.sleep(SECS_BETWEEN_KILLS)
                os.kill(two_processes.worker_pids()[0], signal.SIGKILL)
        finally:
            over.set()

    with ThreadPoolExecutor(THREADS + 1) as pool:
        for done in [pool.submit(kill), *[pool.submit(work, number) for number in range(THREADS)]]:
            done.result()
    assert acknowledged
    check_all_are_there(acknowledged)


def upload_until_acknowledged(site: Site, name: str, dice: random.Random) -> None:
    """As a client does: it asks what has arrived and sends the rest, until all is there. Some is cut off or doubled."""
    content = dice.randbytes(dice.randrange(1, MAX_NBYTES))

    def is_acknowledged() -> bool:
        try:
            status, here = post(site, size_query(name)).split()
            assert status == "0"
            if int(here) >= len(content):
                return True  # a client sends no more then
            body = upload_body(name, content, offset=int(here), max_nbytes=MAX_NBYTES)
            if dice.random() < 0.3:
                with connect(site, len(body)) as connection:
                    connection.sendall(body[: dice.randrange(len(body))])
            if dice.random() < 0.3:
                with ThreadPoolExecutor(2) as both:
                    return "0" in both.map(post, [site] * 2, [body] * 2)
            return post(site, body) == "0"
        except OSError:
            return False  # the process was killed

    wait_until(is_acknowledged, f"{name} to be acknowledged", PATIENCE_SECS, poll_secs=0.05)
