"""Requests of real clients to the project, as captured, are answered alike on the event loop and under plain Django."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from credit.models import App, Result, ServerState
from portal.models import User
from scheduler.models import Upload
from tests.support import asgi_exchange, upload_requests
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import ADDRESS, CAPTURES, captured, key_of, names

pytestmark = pytest.mark.django_db(transaction=True)
REQUESTS = sorted(path.stem.removeprefix("sched_request_") for path in CAPTURES.glob("sched_request_*.xml"))


def by_django(path: str, message: bytes) -> bytes:
    return Client().post(path, message, content_type="text/xml").content


def on_loop(path: str, message: bytes) -> bytes:
    (reply,) = asgi_exchange.ask(asgi_exchange.post(message, path))
    assert reply.status_code == 200
    return reply.content


WAYS = {"django": by_django, "loop": on_loop}


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    make_version(app)
    for _ in range(30):
        make_result(make_workunit(app))
    return app


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_captured_request_is_answered_and_what_it_reports_acknowledged(
    name: str, way: str, app: App, alice: User
) -> None:
    body = captured(name)
    body = re.sub(rb"<authenticator>[^<]*<", f"<authenticator>{key_of(alice)}<".encode(), body)
    reply = WAYS[way](ADDRESS, body).decode()
    assert "<project_name>" in reply and "</scheduler_reply>" in reply
    assert names(reply, "result_ack") == re.findall(r"<result>\s*<name>([^<]*)</name>", body.decode())
    sent = set(names(reply, "result"))
    assert sent == set(
        Result.objects.filter(server_state=ServerState.IN_PROGRESS, user=alice).values_list("name", flat=True)
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_captured_upload_is_taken(way: str, alice: User) -> None:
    body = upload_requests.certified(upload_requests.captured("request_17_bytes"))
    name, limit = re.search(rb"<name>(.*)_0</name>", body), re.search(rb"<max_nbytes>(\d+)<", body)
    assert name and limit
    host = alice.hosts.create(domain_name="studio")
    upload_requests.make_task(name[1].decode(), host, max_nbytes=int(limit[1]))
    assert upload_requests.read_reply(WAYS[way](upload_requests.ADDRESS, body)) == "0"
    assert Upload.objects.get().completed_at is not None
