"""Valkey is killed while the site works, and comes back empty: nothing is lost for good, and nothing is done twice."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from allauth.account.models import EmailAddress
from django.conf import global_settings, settings
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from redis import Redis, RedisError

from accounting.exchange import exports
from accounting.exchange.day_rows import DayRange
from accounting.models import DataCopy
from portal.dev import embedded
from portal.models import RequestedWork, User, WaitingMail
from tests.support.guarded_program import GuardedProgram
from tests.support.sessions import sign_in_lately
from tests.support.site_process import Site, celery_beat, celery_worker
from tests.support.wait import wait_until

PROCESSES = "cobblestone:processes"
pytestmark = pytest.mark.django_db(transaction=True)


class Valkey(GuardedProgram):
    """A server that forgets everything when it ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "valkey.sock"
        command = [str(embedded.programs("valkey") / "valkey-server"), "--port", "0", "--unixsocket", str(self.path)]
        command += ["--save", "", "--appendonly", "no", "--dir", str(folder)]
        super().__init__("Valkey", command, folder / "valkey.log", {}, folder)

    def answers(self) -> bool:
        try:
            with Redis(unix_socket_path=str(self.path), socket_timeout=2) as client:
                return bool(client.ping())
        except RedisError:
            return False


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    with Valkey(tmp_path) as running:
        yield running


@pytest.fixture
def site(transactional_db: None, site_var_dir: Path, tmp_path: Path, valkey: Valkey) -> Iterator[Site]:
    variables = {
        "BROKER_URL": f"redis+socket://{valkey.path}?virtual_host=0",
        "CACHE_URL": f"unix://{valkey.path}?db=1",
        "TRANSITIONER_EVERY_SECS": "1",
    }
    with Site(site_var_dir, tmp_path / "site.log", **variables) as running:
        yield running


def answer(site: Site, path: str, session: str = "") -> tuple[int, str]:
    headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"} if session else {}
    request = urllib.request.Request(f"{site.url}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def log_in(site: Site, email: str, password: str) -> str:
    """The address of the page that a login leads to."""
    return _send_form(site, "account/login/", {"login": email, "password": password})


def sign_up(site: Site, email: str, password: str) -> str:
    return _send_form(site, "account/signup/", {"email": email, "password1": password, "password2": password})


def _send_form(site: Site, path: str, values: dict[str, str]) -> str:
    jar = urllib.request.HTTPCookieProcessor(CookieJar())
    browser = urllib.request.build_opener(jar)
    address = f"{site.url}{path}"
    browser.open(address, timeout=30).read()
    token = next(cookie.value for cookie in jar.cookiejar if cookie.name == "csrftoken")
    form = urlencode({**values, "csrfmiddlewaretoken": token}).encode()
    return str(browser.open(urllib.request.Request(address, form), timeout=30).geturl())


def kept(valkey: Valkey, ask: Callable[[Any], Any]) -> Any:
    """What the site has put into the cache."""
    with Redis(unix_socket_path=str(valkey.path), db=1, socket_timeout=5) as client:
        return ask(client)


def test_what_the_lost_valkey_had_is_done_once(
    valkey: Valkey, site: Site, tmp_path: Path, alice: User, settings: Settings
) -> None:
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    alice.set_password("alice's secret")
    alice.save()
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    client = Client()
    sign_in_lately(client, alice)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    today = timezone.now().date()
    with (
        # This one is there all the time; nobody takes what beat sends.
        celery_worker(site.environment, tmp_path / "requested.log", "--queues", "requested"),
        celery_beat(site.environment, tmp_path / "beat.log"),
    ):
        wait_until(lambda: b"worker" in b"".join(kept(valkey, lambda v: v.hkeys(PROCESSES))), "the worker", 60)
        wait_until(lambda: Redis(unix_socket_path=str(valkey.path)).llen("celery") > 0, "beat to send a task", 60)
        # The message that says that something waits is lost, too.
        copy = exports.ask(alice, DataCopy.Content.CSV, DayRange(today, today))
        valkey.kill()

        assert answer(site, "home/", session)[0] == 200
        status, config = answer(site, "get_project_config.php")
        assert (status, "<error_num>" in config) == (200, False)
        assert log_in(site, alice.email, "alice's secret").endswith("/home/")
        assert answer(site, "readyz")[0] == 503
        # A client gets a key, and somebody signs up.
        sent = hashlib.md5(f"alice's secret{alice.email}".encode()).hexdigest()
        asked = urlencode({"email_addr": alice.email, "passwd_hash": sent})
        assert "<authenticator>" in answer(site, f"lookup_account.php?{asked}")[1]
        sign_up(site, "dora@example.org", "seven green boats")
        assert [mail["Subject"] for mail in site.mails_to("dora@example.org")] == [
            "Cobblestone: Confirm your e-mail address"
        ]
        assert (site.mails_to(alice.email), WaitingMail.objects.count()) == ([], 1)

        valkey.start()
        with celery_worker(site.environment, tmp_path / "worker.log", "--queues", "celery"):
            # The tasks that look for lost work and for mails come once a minute.
            work = RequestedWork.objects.filter(subject=copy.pk)
            wait_until(lambda: work.exclude(finished_at=None).exists(), "the file", 90)
            wait_until(lambda: not WaitingMail.objects.exists(), "the mail", 90)
        assert answer(site, "home/", session)[0] == 200
        assert answer(site, "readyz")[0] == 200
    assert len(site.mails_to(alice.email)) == 1
    copy.refresh_from_db()
    assert (copy.state, work.get().ntries) == (DataCopy.State.READY, 1)
