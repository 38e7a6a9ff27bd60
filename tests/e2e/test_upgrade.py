"""An upgrade without stopping, from a version that is known to have run: docs/how-to/upgrades.md, step by step.

The old version has its own code, environment and requirements. Clients and people use the site all the time, and none
of their requests may fail.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from accounting.benchmarks import fleet
from portal.benchmarks.server import free_port
from scheduler.benchmarks import queue
from tests.support.nginx_deployment import Deployment, Program, unit_command
from tests.support.site_process import CHECKOUT, database_url
from tests.support.wait import wait_until

OLD: Final = "410a31b636ab6f182b94ea964a8f1e1b55acdbd9"
"""The version from which the test upgrades: the last one before migrations were judged."""
UNITS: Final = ("cobblestone-web", "cobblestone-clients")
AT_EACH_STEP: Final = 60
"""Requests of each kind that are answered before the upgrade goes on."""
_POPULATION: Final = """
import base64, json
from django.test import Client
from accounting.benchmarks import fleet
from portal.models import User
from scheduler.benchmarks import queue
queue.HOSTS = 40
app, computers = queue.create()
queue.fill(app, 20_000)
members = fleet.create(40)
browser = Client()
browser.force_login(User.objects.get(email="volunteer0@example.org"))
text = lambda data: base64.b64encode(data).decode()
print("POPULATION", json.dumps({
    "members": [[text(each.head), text(each.tail)] for each in members],
    "computers": [[each.key, each.host_id, each.code_key] for each in computers],
    "session": browser.cookies["sessionid"].value,
}))
"""


@dataclass(slots=True)
class Load:
    """What clients and people ask, all the time; ``failures``: what they were told instead of an answer."""

    address: tuple[str, int]
    population: dict[str, Any]
    answered: dict[str, int] = field(default_factory=lambda: {"sync": 0, "jobs": 0, "pages": 0})
    failures: list[str] = field(default_factory=list)
    jobs: list[bytes] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def workers(self) -> Iterator[Callable[[], None]]:
        members = [
            fleet.Member(base64.b64decode(head), base64.b64decode(tail)) for head, tail in self.population["members"]
        ]
        computers = [queue.Member(*each) for each in self.population["computers"]]
        yield from (lambda mine=members[part::2]: self._sync(mine) for part in range(2))
        yield from (lambda mine=computers[part::2]: self._ask_for_jobs(mine) for part in range(2))
        yield self._read_pages

    def more(self) -> None:
        """Return when the site has answered more requests of each kind, or one has failed."""
        before = dict(self.answered)

        def is_enough() -> bool:
            return all(self.answered[kind] >= before[kind] + AT_EACH_STEP for kind in before)

        wait_until(lambda: self.failures or is_enough(), "answers", 120)
        assert self.failures == []

    def _sync(self, members: list[fleet.Member]) -> None:
        for member in itertools.cycle(members):
            if self.over.is_set():
                return
            reply = self._asked("sync", "/rpc.php", member.request())
            if b"<repeat_sec>" not in reply or b"<error_num>" in reply:
                self.failures.append(f"sync: {reply[:500]!r}")

    def _ask_for_jobs(self, members: list[queue.Member]) -> None:
        for member in itertools.cycle(members):
            if self.over.is_set():
                return
            reply = self._asked("jobs", "/project/scheduler", member.request())
            if b"<project_is_down" in reply or b"</scheduler_reply>" not in reply:
                self.failures.append(f"jobs: {reply[:500]!r}")
            ncarried = len(member.jobs)
            member.read(reply)
            self.jobs += member.jobs[ncarried:]

    def _read_pages(self) -> None:
        cookie = {"Cookie": f"sessionid={self.population['session']}"}
        for number in itertools.count():
            if self.over.is_set():
                return
            # The second is for those who are signed in: others are sent elsewhere.
            path, headers = (("/", {}), ("/account/profile/", cookie))[number % 2]
            page = self._asked("pages", path, headers=headers)
            for file in set(re.findall(rb'(?:href|src)="(/static/[^"]+\.(?:css|js))"', page)):
                self._asked("pages", file.decode())

    def _asked(self, kind: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
        wanted = HTTPConnection(*self.address, timeout=60)
        try:
            wanted.request("POST" if body else "GET", path, body, (headers or {}) | {"Connection": "close"})
            reply = wanted.getresponse()
            text = reply.read()
        except (OSError, HTTPException) as error:
            self.failures.append(f"{path}: {error!r}")
            return b""
        finally:
            wanted.close()
        if reply.status != 200:
            self.failures.append(f"{path}: {reply.status} {text[:300]!r}")
        self.answered[kind] += 1
        return text


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the old version with an environment of its own."""
    folder = tmp_path_factory.mktemp("old")
    archive = subprocess.run(["git", "archive", OLD], cwd=CHECKOUT, capture_output=True)
    if archive.returncode != 0:
        pytest.skip(f"the history of this clone does not have {OLD[:8]}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder)
    subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=folder, check=True)
    install = [_python(folder), "-m", "pip", "install", "-qq", "--no-cache-dir", "--disable-pip-version-check"]
    subprocess.run([*install, "--require-hashes", "-r", "requirements.txt"], cwd=folder, check=True)
    subprocess.run([_python(folder), "-m", "portal.languages.compiling"], cwd=folder, check=True)
    return folder


@pytest.fixture
def old_database(transactional_db: None) -> Iterator[str]:
    """The address of an empty database."""
    name = f"{connection.settings_dict['NAME']}_upgrade"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{name}"')
    yield urlunsplit(urlsplit(database_url())._replace(path=f"/{name}"))
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _python(folder: Path) -> str:
    return str(folder / ".venv" / "bin" / "python")


def _managed(checkout: Path, python: str, environment: dict[str, str], *arguments: str) -> str:
    """What a command of this version writes; it must succeed."""
    command = [python, "manage.py", *arguments]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.usefixtures("nginx")
def test_nobody_notices_an_upgrade(old: Path, old_database: str, tmp_path: Path) -> None:
    var_dir = tmp_path / "var"
    var_dir.mkdir()
    site = Deployment(var_dir, tmp_path, DATABASE_URL=old_database, MIN_SENDWORK_INTERVAL_SECS="0")
    variables = dict(site.web.environment)
    variables.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)

    def run_old(*arguments: str) -> str:
        return _managed(old, _python(old), variables, *arguments)

    def run_new(*arguments: str) -> str:
        return _managed(CHECKOUT, sys.executable, variables, *arguments)

    run_old("migrate", "--verbosity", "0")
    run_old("prepare")
    run_old("collectstatic", "--no-input", "--verbosity", "0")
    shown = re.search(r"^POPULATION (.*)$", run_old("shell", "-c", _POPULATION), re.M)
    assert shown
    old_programs = [
        Program(
            unit_command(unit, port, old, _python(old)),
            f"http://127.0.0.1:{port}/",
            tmp_path / f"old-{unit}.log",
            variables,
            old,
        )
        for unit, port in zip(UNITS, (free_port(), free_port()), strict=True)
    ]
    new_programs = [site.web, site.clients]
    new_config = (tmp_path / "site.conf").read_text()
    old_config = new_config
    for before, after in zip(old_programs, new_programs, strict=True):
        old_config = old_config.replace(after.url[7:-1], before.url[7:-1])
    (tmp_path / "site.conf").write_text(old_config)
    load = Load(site.address, json.loads(shown[1]))
    running: list[Program] = []
    with ThreadPoolExecutor(8) as pool:
        try:
            for program in [*old_programs, site.nginx]:
                program.start()
                running.append(program)
            asking: list[Future[None]] = [pool.submit(work) for work in load.workers()]
            load.more()
            assert "No stop is needed" in run_new("upgrade_check")
            run_new("migrate", "--verbosity", "0")
            run_new("prepare")
            load.more()
            run_new("collectstatic", "--no-input", "--verbosity", "0")
            for program in new_programs:
                program.start()
                running.append(program)
            load.more()
            (tmp_path / "site.conf").write_text(new_config)
            os.kill(int((tmp_path / "nginx.pid").read_text()), signal.SIGHUP)
            load.more()
            for program in old_programs:
                program.stop()
            load.more()
        finally:
            load.over.set()
            for each in asking:
                each.result()
            for program in reversed(running):
                program.stop()
    assert load.failures == []
    assert len(set(load.jobs)) == len(load.jobs) > 0
    assert "consistent" in run_new("check_ledger")
