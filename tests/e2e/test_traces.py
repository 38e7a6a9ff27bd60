"""Traces of the running site: one trace from a page to the task that it queued, and nothing secret in any of them."""

from __future__ import annotations

import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.middleware.csrf import _get_new_csrf_string
from django.test import Client

from accounting.models import DataCopy
from portal.models import User
from tests.support import site_process
from tests.support.guarded_program import GuardedProgram
from tests.support.sessions import sign_in_lately
from tests.support.site_process import Site
from tests.support.trace_receiver import ReceivedSpan, TraceReceiver
from tests.support.wait import wait_until

WORKER = ("-m", "celery", "--quiet", "--app", "portal", "worker", "--concurrency", "1", "--queues", "celery,requested")


@pytest.fixture
def receiver() -> Iterator[TraceReceiver]:
    with TraceReceiver() as running:
        yield running


@pytest.fixture
def traced_site(transactional_db: None, receiver: TraceReceiver, site_var_dir: Path, tmp_path: Path) -> Iterator[Site]:
    more = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
    variables = site_process.environment(site_var_dir, **more)
    command = [sys.executable, "-W", "ignore", *WORKER, "--without-gossip", "--without-mingle"]
    with (
        Site(site_var_dir, tmp_path / "site.log", **more) as site,
        GuardedProgram("the worker", command, tmp_path / "worker.log", variables, site_process.CHECKOUT),
    ):
        yield site


def ask(site: Site, path: str, client: Client, **fields: str) -> int:
    """A request by a browser that is signed in as the client is."""
    token = _get_new_csrf_string()
    cookies = f"{settings.SESSION_COOKIE_NAME}={client.session.session_key}; {settings.CSRF_COOKIE_NAME}={token}"
    body = "&".join(f"{name}={value}" for name, value in {"csrfmiddlewaretoken": token, **fields}.items()).encode()
    request = urllib.request.Request(site.url + path, body if fields else None, {"Cookie": cookies})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return int(reply.status)


def test_a_page_its_statements_and_the_task_that_it_queued_are_one_trace(
    traced_site: Site, receiver: TraceReceiver, alice: User
) -> None:
    client = Client()
    sign_in_lately(client, alice)
    secret = secrets.token_hex(16)
    assert ask(traced_site, f"history/?q={secret}", client) == 200
    assert ask(traced_site, "account/data/copy/", client, really="1") == 200
    url = f"{traced_site.url}lookup_account.php?email_addr=alice@example.org&passwd_hash={secret}"
    assert b"error_num" in urllib.request.urlopen(url, timeout=30).read()
    wait_until(DataCopy.objects.filter(finished_at__isnull=False).exists, "the copy to be made", 60)

    def span(service: str, name: str) -> ReceivedSpan:
        def found() -> list[ReceivedSpan]:
            of_service = [each for each in receiver.spans if each.service == f"cobblestone-{service}"]
            return [each for each in of_service if name in each.name]

        return wait_until(found, f"the span {name}", 30)[0]

    task = span("worker", "run/portal.tasks.carry_out_requested")
    page = span("clients", "POST account/data/copy/")
    rpc = span("clients", "client /lookup_account.php")
    assert task.trace == page.trace
    statements = [
        each.attributes["db.statement"]
        for each in receiver.spans
        if each.trace == page.trace and "db.statement" in each.attributes
    ]
    assert any("INSERT INTO" in text for text in statements)
    assert page.attributes["http.status_code"] == "302"
    assert page.attributes["cobblestone.path"] == "/account/data/copy/"
    assert rpc.attributes["cobblestone.error_num"] != "0" and rpc.elapsed_ns > 0
    whole = b"".join(receiver.bodies)
    for hidden in (secret, str(client.session.session_key), alice.email):
        assert hidden.encode() not in whole


def test_without_an_address_nothing_is_traced(tmp_path: Path) -> None:
    script = (
        "import sys, portal.asgi, portal.wsgi, portal.celery; portal.celery._start_traces();"
        "print('portal.ops.traces' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=site_process.CHECKOUT,
        env=site_process.environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"
