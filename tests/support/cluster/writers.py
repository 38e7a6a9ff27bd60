"""Who writes other than by clients' RPCs: a person with a browser, a submitter of jobs, a computer that uploads.

Each repeats what was not acknowledged, as browsers' users, scripts and clients do, and checks it in the tables.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import psycopg
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from credit.models import App
from portal.models import ApiToken, Host, User
from portal.people.api_tokens import issue_token
from tests.support.cluster.history import Address, History, ask, post
from tests.support.credit_factories import make_result, make_workunit
from tests.support.upload_requests import address_of, size_query, upload_body

FILE_NBYTES: Final = 20_000
PROFILE: Final = "/account/profile/"
_CSRF: Final = "c" * 32


@dataclass
class Person:
    """Somebody signed in who changes their name on a page, to another one each time."""

    user: User
    session: str
    nsent: int = 0
    acknowledged: str = ""

    kind = "page writes"

    @classmethod
    def create(cls) -> Person:
        user = User.objects.create_user("renamer@example.org", None)
        client = Client()
        client.force_login(user)
        return cls(user, str(client.session.session_key))

    def act(self, address: Address, history: History) -> bool:
        self.nsent += 1
        name = f"Name {self.nsent}"
        cookies = f"{settings.SESSION_COOKIE_NAME}={self.session}; {settings.CSRF_COOKIE_NAME}={_CSRF}"
        headers = f"Cookie: {cookies}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        body = urlencode({"name": name, "language": "", "time_zone": "", "csrfmiddlewaretoken": _CSRF}).encode()
        status, head, _ = ask(address, "POST", PROFILE, body, headers)
        # Who is not signed in is sent elsewhere.
        if status != 302 or f"\r\nlocation: {PROFILE}\r\n".encode() not in head.lower() + b"\r\n":
            history.seen[self.kind].add(str(status))
            return False
        self.acknowledged = name
        history.note(self.kind)
        return True

    def faults(self, session: psycopg.Connection[Any], *, is_frozen: bool) -> list[str]:
        row = session.execute("SELECT name FROM portal_user WHERE id = %s", [self.user.pk]).fetchone()
        stored, first = (int(name.split()[-1] if name else 0) for name in (row[0] if row else "", self.acknowledged))
        if first <= stored <= (self.nsent if is_frozen else first):
            return []
        return [f"name: acknowledged {self.acknowledged}, sent {self.nsent}, stored {row}"]


@dataclass
class Submitter:
    """A script that submits batches of one job each by the REST API."""

    token: str
    app: App
    job: dict[str, Any]
    acknowledged: list[str] = field(default_factory=list)

    kind = "REST"

    @classmethod
    def create(cls, app: App, job: dict[str, Any]) -> Submitter:
        user = User.objects.create_user("submitter@example.org", None)
        user.user_permissions.add(Permission.objects.get(content_type__app_label="credit", codename="add_batch"))
        return cls(issue_token(user, name="script", scopes=[ApiToken.Scope.JOBS], lifetime=None), app, job)

    def act(self, address: Address, history: History) -> bool:
        name = f"batch {len(self.acknowledged)}"
        given = {"app": self.app.name, "name": name, "request_id": name, "defaults": self.job, "jobs": [{}]}
        headers = f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
        status, *_ = ask(address, "POST", "/api/v1/batches/", json.dumps(given).encode(), headers)
        if status not in (200, 201):
            history.seen[self.kind].add(str(status))
            return False
        self.acknowledged.append(name)
        history.note(self.kind)
        return True

    def faults(self, session: psycopg.Connection[Any], *, is_frozen: bool) -> list[str]:
        rows = session.execute(
            "SELECT b.name, count(w.id) FROM credit_batch b LEFT JOIN credit_workunit w ON w.batch_id = b.id"
            "  GROUP BY b.id, b.name"
        ).fetchall()
        found = [(name, njobs) for name, njobs in rows if name in self.acknowledged]
        if sorted(found) == sorted((name, 1) for name in self.acknowledged):
            return []
        return [f"batches: acknowledged {len(self.acknowledged)}, stored with jobs {sorted(found)}"]


@dataclass
class Uploader:
    """A computer that uploads files. The connection breaks in each of them once; it goes on where the site is."""

    names: list[str]
    is_cut: bool = False
    acknowledged: list[str] = field(default_factory=list)

    kind = "uploads"

    @classmethod
    def create(cls, app: App, nfiles: int) -> Uploader:
        owner = User.objects.create_user("uploader@example.org", None)
        host = Host.objects.create(owner=owner, domain_name="uploader", host_cpid="f" * 32)
        now = timezone.now()
        output = {"open_name": "out", "max_nbytes": FILE_NBYTES, "optional": False}
        workunit = make_workunit(app, output_files=[output])
        dates = {"sent_at": now, "deadline_at": now + dt.timedelta(days=7)}
        for number in range(nfiles):
            make_result(workunit, host, name=f"upload_{number}", **dates)
        return cls([f"upload_{number}_0" for number in range(nfiles)])

    def act(self, address: Address, history: History) -> bool:
        name = self.names[len(self.acknowledged)]
        content = _content(name)
        here = self._here(address, name)
        if here is None:
            history.seen[self.kind].add("no size")
            return False
        body = upload_body(name, content, offset=min(here, len(content)), max_nbytes=FILE_NBYTES)
        path = address_of(body)
        if not self.is_cut:
            self.is_cut = True
            ask(address, "POST", path, body, cut_nbytes=FILE_NBYTES // 2)
            return False
        reply = post(address, path, body)
        if b"<status>0</status>" not in reply:
            history.seen[self.kind].add(reply.decode(errors="replace")[:100])
            return False
        self.is_cut = False
        self.acknowledged.append(name)
        history.note(self.kind)
        return True

    def _here(self, address: Address, name: str) -> int | None:
        """How much of the file the site has; None if it did not say."""
        query = size_query(name)
        reply = post(address, address_of(query), query)
        if b"<status>0</status>" not in reply:
            return None
        return int(reply.partition(b"<file_size>")[2].partition(b"<")[0])

    def faults(self, session: psycopg.Connection[Any], *, is_frozen: bool) -> list[str]:
        rows = session.execute(
            "SELECT name, nbytes, md5 FROM scheduler_upload WHERE completed_at IS NOT NULL  AND name = ANY (%s)",
            [self.acknowledged],
        ).fetchall()
        wanted = [(name, FILE_NBYTES, _md5(_content(name))) for name in self.acknowledged]
        return [f"uploads: {each}" for each in set(rows) ^ set(wanted)]


Writer = Person | Submitter | Uploader


def create(app: App, job: dict[str, Any], nuploads: int) -> list[Writer]:
    return [Person.create(), Submitter.create(app, job), Uploader.create(app, nuploads)]


def _content(name: str) -> bytes:
    return (name.encode() * (FILE_NBYTES // len(name) + 1))[:FILE_NBYTES]


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
