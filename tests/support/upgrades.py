"""Upgrades for tests: a version from which one upgrades, and clients and people who use the site meanwhile."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from accounting.benchmarks import fleet
from scheduler.benchmarks import queue
from tests.support.scheduler_clients import names, result_xml
from tests.support.site_process import CHECKOUT
from tests.support.wait import wait_until

OLD: Final = os.environ.get("UPGRADE_FROM", "410a31b636ab6f182b94ea964a8f1e1b55acdbd9")
"""The version from which tests upgrade. If nobody says: the last one before migrations were judged."""
AT_EACH_STEP: Final = 60
"""Requests of each kind that are answered before the upgrade goes on."""
_END: Final = b"</scheduler_request>"
_OUTPUT_MD5: Final = hashlib.md5(b"x" * 17, usedforsecurity=False).hexdigest()
_POPULATION: Final = """
import base64, hashlib, json
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from accounting.benchmarks import fleet
from django.utils import timezone
from credit.models import Result, Workunit
from portal.models import User
from scheduler.benchmarks import queue
from scheduler.models import StoredFile, Upload
queue.HOSTS = 40
app, computers = queue.create()
queue.fill(app, 8_000)
members = fleet.create(40)
# The program is there, and each job's output is here already.
program, output = b"#" * 423, ContentFile(b"x" * 17)
default_storage.save("bench_100", ContentFile(program))
StoredFile.objects.update(md5=hashlib.md5(program, usedforsecurity=False).hexdigest())
Workunit.objects.update(input_files=[])
Upload.objects.bulk_create(
    Upload(
        result=result, name=f"{result.name}_0", path=default_storage.save(f"outputs/{result.name}_0", output),
        nbytes=17, received_nbytes=17, md5=hashlib.md5(b"x" * 17).hexdigest(), completed_at=timezone.now(),
    )
    for result in Result.objects.only("name")
)
browsers = [Client() for _ in range(8)]
for number, browser in enumerate(browsers):
    browser.force_login(User.objects.get(email=f"volunteer{number}@example.org"))
text = lambda data: base64.b64encode(data).decode()
print("POPULATION", json.dumps({
    "members": [[text(each.head), text(each.tail)] for each in members],
    "computers": [[each.key, each.host_id, each.code_key] for each in computers],
    "sessions": [browser.cookies["sessionid"].value for browser in browsers],
}))
"""


class NoSuchVersion(Exception):
    """This clone does not have it."""


@dataclass(frozen=True, slots=True)
class Version:
    """A checkout with the Python of its environment."""

    folder: Path
    python: str

    def managed(self, variables: Mapping[str, str], *arguments: str) -> str:
        """What a command of this version writes; it must succeed."""
        command = [self.python, "manage.py", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def populate(self, variables: Mapping[str, str]) -> dict[str, Any]:
        """Fill the site with computers, jobs, and volunteers who are signed in; what `Load` has to know of them."""
        shown = re.search(r"^POPULATION (.*)$", self.managed(variables, "shell", "-c", _POPULATION), re.M)
        assert shown
        found: dict[str, Any] = json.loads(shown[1])
        return found


NEW: Final = Version(CHECKOUT, sys.executable)


def check_out(folder: Path) -> Version:
    """The old version, with an environment of its own if its requirements differ. Raises NoSuchVersion."""
    archive = subprocess.run(["git", "archive", OLD], cwd=CHECKOUT, capture_output=True)
    if archive.returncode != 0:
        raise NoSuchVersion(f"the history of this clone does not have {OLD[:8]}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder)
    locked = "requirements.txt"
    if (folder / locked).read_bytes() == (CHECKOUT / locked).read_bytes():
        found = Version(folder, sys.executable)
    else:
        found = Version(folder, str(folder / ".venv" / "bin" / "python"))
        subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=folder, check=True)
        install = [found.python, "-m", "pip", "install", "-qq", "--no-cache-dir", "--disable-pip-version-check"]
        subprocess.run([*install, "--require-hashes", "-r", locked], cwd=folder, check=True)
    subprocess.run([found.python, "-m", "portal.languages.compiling"], cwd=folder, check=True)
    return found


@dataclass(slots=True)
class Load:
    """What clients and people ask, all the time; ``failures``: what they were told instead of an answer.

    ``reports``: whether computers report the jobs that they have. ``reported``: those whose report was acknowledged.
    """

    address: tuple[str, int]
    population: dict[str, Any]
    answered: dict[str, int] = field(default_factory=lambda: {"sync": 0, "jobs": 0, "pages": 0, "copies": 0})
    failures: list[str] = field(default_factory=list)
    jobs: list[bytes] = field(default_factory=list)
    reports: bool = False
    reported: list[str] = field(default_factory=list)
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
            return all(self.answered[kind] >= before[kind] + AT_EACH_STEP for kind in ("sync", "jobs", "pages"))

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
            done = member.jobs if self.reports else []
            member.jobs = [] if self.reports else member.jobs
            results = "".join(result_xml(name, files={f"{name}_0": _OUTPUT_MD5}) for name in map(bytes.decode, done))
            body = member.request().replace(_END, results.encode() + _END)
            reply = self._asked("jobs", "/project/scheduler", body)
            if b"<project_is_down" in reply or b"</scheduler_reply>" not in reply:
                self.failures.append(f"jobs: {reply[:500]!r}")
            self.reported += names(reply.decode(), "result_ack")
            if self.reports:
                # So that there are jobs until the end
                self.over.wait(0.1)
            ncarried = len(member.jobs)
            member.read(reply)
            self.jobs += member.jobs[ncarried:]

    def _read_pages(self) -> None:
        cookie = {"Cookie": f"sessionid={self.population['sessions'][0]}"}
        for number in itertools.count():
            if self.over.is_set():
                return
            # The second is for those who are signed in: others are sent elsewhere.
            path, headers = (("/", {}), ("/account/profile/", cookie))[number % 2]
            page = self._asked("pages", path, headers=headers)
            for file in set(re.findall(rb'(?:href|src)="(/static/[^"]+\.(?:css|js))"', page)):
                self._asked("pages", file.decode())

    def ask_for_copy(self, number: int) -> None:
        """The volunteer with this number asks for a copy of their data, on the page for it."""
        token = "c" * 32
        headers = {
            "Cookie": f"sessionid={self.population['sessions'][number]}; csrftoken={token}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self._asked("copies", "/account/data/copy/", f"csrfmiddlewaretoken={token}".encode(), headers, 302)

    def _asked(
        self, kind: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None, status: int = 200
    ) -> bytes:
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
        if reply.status != status:
            self.failures.append(f"{path}: {reply.status} {text[:300]!r}")
        self.answered[kind] += 1
        return text
