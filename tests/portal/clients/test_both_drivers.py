"""BOINC clients are answered alike on the event loop and under plain Django, without the middleware for people.

They are never sent a reply that makes them hang.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path
from pytest_django import Settings

from portal.clients import application, pages
from portal.clients.database.batching import Batcher
from portal.clients.effects import Steps
from portal.clients.pages import Pages
from portal.clients.paths import ClientPath, by_path
from portal.clients.views import ClientView
from portal.ops import metrics
from tests.support import client_handlers
from tests.support.asgi_exchange import Asked, Reply, ask, post

LogLines = Callable[[], list[dict[str, object]]]
PATHS = by_path(
    ClientPath("/rpc.php", "tests.support.client_handlers.tell", "acct_mgr_reply", body_bytes=1000),
    ClientPath("/lookup_account.php", "tests.support.client_handlers.fail_later", "error"),
    ClientPath("/create_account.php", "tests.support.client_handlers.no_such_handler", "error"),
    ClientPath("/project/lookup_account.php", "tests.support.client_handlers.count", "error"),
    ClientPath("/project/scheduler", "tests.support.client_handlers.tell", "scheduler_reply", 1000, longest_bytes=5000),
    ClientPath(
        "/project/file_upload_handler", "tests.support.client_handlers.sum_up", "data_server_reply", is_stream=True
    ),
    ClientPath("/wait", "tests.support.client_handlers.wait", "error"),
)


def page(request: HttpRequest) -> HttpResponse:
    body = request.body
    return HttpResponse(f"{hasattr(request, 'session')} {len(body)} {request.META['REMOTE_ADDR']}")


urlpatterns = [
    *[path(route.path[1:], ClientView.as_view(route=route)) for route in PATHS.values()],
    path("page", page),
]
pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _own_paths(settings: Settings) -> None:
    settings.CLIENT_PATHS = PATHS


def under_django(asked: Asked) -> Reply:
    """The same request to Django's WSGI handler, as a server hands it over."""
    answered: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
        answered.append((status, headers))
        return lambda _: None

    environ = {
        "REQUEST_METHOD": asked.method,
        "PATH_INFO": asked.path,
        "QUERY_STRING": asked.query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "REMOTE_ADDR": asked.address,
        "wsgi.input": io.BytesIO(b"".join(part for part in asked.parts if part is not None)),
        "wsgi.url_scheme": "http",
        "wsgi.errors": io.StringIO(),
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in asked.headers.items()},
    }
    environ["CONTENT_LENGTH"] = environ.pop("HTTP_CONTENT_LENGTH", "")
    response = cast("HttpResponse", WSGIHandler()(environ, start_response))
    content = b"".join(response)
    response.close()
    status, headers = answered[0]
    return Reply(int(status.split()[0]), {name.title(): value for name, value in headers}, content)


def on_loop(asked: Asked) -> Reply:
    return ask(asked)[0]


Way = Callable[[Asked], Reply]


@pytest.fixture(params=[on_loop, under_django])
def way(request: pytest.FixtureRequest) -> Way:
    """The two ways in which a client's request may be answered."""
    found: Way = request.param
    return found


def error_of(reply: Reply) -> tuple[str, int, str]:
    """Root element, error number and sentence of a BOINC error reply."""
    root = ElementTree.fromstring(reply.content)
    return root.tag, int(root.findtext("error_num", "0")), root.findtext("error_msg", "")


def test_a_client_passes_sessions_cookies_redirects_and_policies(way: Way, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    reply = way(post(b"<x/>", host="evil.example"))
    assert reply.status_code == 200
    assert json.loads(reply.content) == {"length": 4, "is_cut": False, "address": "127.0.0.1"}
    assert set(reply.headers) == {"Content-Type", "Content-Length"}


def test_a_page_is_djangos(way: Way) -> None:
    reply = way(Asked("GET", "/page"))
    assert reply.content == b"True 0 127.0.0.1"
    assert {"Content-Security-Policy", "X-Request-Id"} <= set(reply.headers)


@pytest.mark.parametrize("asked", [Asked("GET", "/rpc.php", "fail=1"), Asked("GET", "/lookup_account.php")])
def test_a_use_case_that_fails_is_answered_by_an_error_that_clients_understand(way: Way, asked: Asked) -> None:
    reply = way(asked)
    assert reply.status_code == 200
    root, number, sentence = error_of(reply)
    assert (root, number) == (PATHS[asked.path].root, -1)
    assert "try again" in sentence


def test_an_address_without_a_use_case_is_answered_as_a_failure(way: Way) -> None:
    reply = way(Asked("GET", "/create_account.php"))
    assert (reply.status_code, error_of(reply)[:2]) == (200, ("error", -1))


def test_a_body_over_the_limit_is_a_protocol_error(way: Way) -> None:
    assert json.loads(way(post(b"x" * 1000)).content)["length"] == 1000
    reply = way(post(b"x" * 1001))
    assert reply.status_code == 200
    root, number, sentence = error_of(reply)
    assert (root, number) == ("acct_mgr_reply", -112)
    assert "1000 bytes" in sentence


def test_where_more_may_come_the_rest_is_passed_over(way: Way) -> None:
    reply = way(post(b"x" * 5000, "/project/scheduler"))
    assert json.loads(reply.content) == {"length": 1000, "is_cut": True, "address": "127.0.0.1"}
    reply = way(post(b"x" * 5001, "/project/scheduler"))
    assert b"<project_is_down/>" in reply.content and b"5000 bytes" in reply.content


def test_a_chunked_body_is_refused(way: Way) -> None:
    reply = way(Asked(parts=[b"<x/>"], headers={"transfer-encoding": "chunked"}))
    assert (reply.status_code, error_of(reply)[1]) == (411, -1)


@pytest.mark.parametrize("length", ["5", "99"])
@pytest.mark.parametrize("path", ["/rpc.php", "/project/scheduler"])
def test_a_body_that_is_cut_off_is_refused(way: Way, path: str, length: str) -> None:
    reply = way(Asked(path=path, parts=[b"<x/>"], headers={"content-length": length}))
    assert reply.status_code == 400
    assert PATHS[path].root.encode() in reply.content


@pytest.mark.parametrize("length", ["", "0", "-5", "many", "9" * 30])
def test_a_length_that_is_none_is_no_length(way: Way, length: str) -> None:
    headers = {"content-length": length} if length else {}
    assert way(Asked(headers=headers)).status_code in (200, 400)


def test_a_body_may_come_in_parts(way: Way) -> None:
    reply = way(Asked(parts=[b"x" * 400] * 2, headers={"content-length": "800"}))
    assert json.loads(reply.content)["length"] == 800


def test_a_stream_is_read_by_its_use_case(way: Way) -> None:
    parts = [b"x" * 7000, b"y" * 30_000]
    asked = Asked(path="/project/file_upload_handler", parts=parts, headers={"content-length": "37000"})
    assert way(asked).content == b"37000"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(way: Way, method: str) -> None:
    reply = way(Asked(method))
    assert (reply.status_code, reply.headers["Allow"]) == (405, "GET, POST")


def test_the_address_is_the_servers_word_unless_a_proxy_is_trusted(way: Way, settings: Settings) -> None:
    def address(forwarded: str) -> str:
        return str(json.loads(way(post(b"", **{"x-forwarded-for": forwarded})).content)["address"])

    assert address("1.2.3.4, 5.6.7.8") == "127.0.0.1"
    settings.BEHIND_PROXY = True
    # The proxy appends whom it saw; what stands before that was sent along.
    assert address("1.2.3.4, 5.6.7.8") == "5.6.7.8"
    assert address("2001:DB8::0:9") == "2001:db8::9"
    assert address("x' OR 1") == "127.0.0.1"


def test_both_ways_answer_and_log_alike(log_lines: LogLines) -> None:
    asked = [
        post(b"<x/>", **{"user-agent": "BOINC client (x86_64-pc-linux-gnu 7.20.5)"}),
        Asked("GET", "/rpc.php", "fail=because"),
        Asked("PUT"),
        Asked(parts=[b"<x"], headers={"content-length": "4"}),
        post(b"x" * 1001),
    ]
    lines: list[list[dict[str, object]]] = []
    replies: list[list[Reply]] = []
    for way in (on_loop, under_django):
        before = len(log_lines())
        replies.append([way(each) for each in asked])
        lines.append([{**line, "ms": 0, "time": "", "request_id": ""} for line in log_lines()[before:]])
    assert [(r.status_code, r.content) for r in replies[0]] == [(r.status_code, r.content) for r in replies[1]]
    assert [line["event"] for line in lines[0]] == [line["event"] for line in lines[1]]
    requests = [[line for line in each if line["event"] == "request"] for each in lines]
    assert requests[0] == requests[1]
    assert len(requests[0]) == len(asked)


def test_a_request_has_one_line_and_its_failure_another_with_the_same_id(way: Way, log_lines: LogLines) -> None:
    way(Asked("GET", "/rpc.php", "fail=because", headers={"user-agent": "BOINC client (x86_64-pc-linux-gnu 7.20.5)"}))
    failure, request = log_lines()
    assert failure["event"] == "protocol_failed"
    assert "ValueError" in str(failure["exception"])
    assert failure["request_id"] == request["request_id"]
    assert (request["event"], request["path"], request["status"]) == ("request", "/rpc.php", 200)
    assert (request["error_num"], request["bytes_in"]) == (-1, 0)
    assert request["user_agent"] == "BOINC client (x86_64-pc-linux-gnu 7.20.5)"
    assert "because" not in str(request)


def test_a_failure_in_a_thread_carries_the_requests_id(way: Way, log_lines: LogLines) -> None:
    way(Asked("GET", "/lookup_account.php"))
    failure, request = log_lines()
    assert "in a thread" in str(failure["exception"])
    assert failure["request_id"] == request["request_id"]


def test_the_proxys_request_id_is_taken_if_it_is_trusted_and_well_formed(
    way: Way, settings: Settings, log_lines: LogLines
) -> None:
    def id_for(given: str) -> object:
        way(post(b"", **{"x-request-id": given}))
        return log_lines()[-1]["request_id"]

    assert id_for("abcdef-0123") != "abcdef-0123"
    settings.BEHIND_PROXY = True
    assert id_for("abcdef-0123") == "abcdef-0123"
    assert id_for('"},{"forged":"line') != '"},{"forged":"line'
    assert id_for("x" * 65) != "x" * 65


def test_a_fault_outside_the_use_case_is_answered_on_the_loop_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Batcher, steps: Steps[Any]) -> Any:
        steps.close()
        raise RuntimeError("the driver")

    monkeypatch.setattr(Batcher, "run", broken)
    assert error_of(on_loop(post(b"")))[:2] == ("acct_mgr_reply", -1)


def test_a_use_case_that_takes_too_long_is_told_to_come_later() -> None:
    client_handlers.goes_on.clear()
    try:
        (reply,) = ask(Asked("GET", "/wait"), answer_secs=0.2)
    finally:
        client_handlers.goes_on.set()
    assert (reply.status_code, error_of(reply)[1]) == (200, -1)
    assert "try again" in error_of(reply)[2]


def test_with_too_many_under_way_more_are_told_to_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "MAX_REQUESTS", 2)
    client_handlers.goes_on.clear()
    timer = threading.Timer(0.5, client_handlers.goes_on.set)
    timer.start()
    replies = ask(Asked("GET", "/wait"), Asked("GET", "/wait"), Asked("GET", "/wait"))
    timer.join()
    assert [reply.content for reply in replies[:2]] == [b"went on"] * 2
    assert "too busy" in error_of(replies[2])[2]


@pytest.mark.parametrize("path", ["/rpc.php", "/project/scheduler", "/project/file_upload_handler", "/page"])
def test_a_body_that_does_not_come_is_given_up(path: str) -> None:
    given = {"body_secs": 0.2, "pages": Pages(WSGIHandler(), body_secs=0.2)}
    (reply,) = ask(Asked(path=path, parts=[b"x", None], headers={"content-length": "100"}), **given)
    assert reply.status_code in (200, 408)
    assert reply.content


def test_a_page_gets_its_body_whole_and_a_forged_header_not() -> None:
    parts = [b"x" * 300_000] * 3
    asked = Asked(path="/page", parts=parts, headers={"content-length": "900000", "x_forwarded_for": "1.2.3.4"})
    assert ask(replace(asked, method="GET"))[0].content == b"True 900000 127.0.0.1"


def test_clients_are_answered_while_every_page_thread_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def busy_page(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        assert goes_on.wait(20)
        start_response("200 OK", [])
        return [b"page"]

    send_reply = application._send

    async def send_and_let_go(*args: Any, **options: Any) -> None:
        await send_reply(*args, **options)
        goes_on.set()

    monkeypatch.setattr(application, "_send", send_and_let_go)
    waiting = [Asked("GET", "/page") for _ in range(pages.THREADS + 5)]
    # Were the client's request behind the pages, they would wait in vain, and fail.
    replies = ask(*waiting, post(b"<x/>"), pages=Pages(busy_page, body_secs=5))
    assert [reply.content for reply in replies[:-1]] == [b"page"] * len(waiting)


def test_the_plain_way_gives_djangos_connection_back() -> None:
    connection.close()
    assert under_django(Asked("GET", "/project/lookup_account.php")).status_code == 200
    assert connection.connection is None


def test_counters_grow_alike(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[str, int]] = []
    monkeypatch.setattr(metrics, "count_rpc", lambda path, number, secs: counted.append((path, number)))
    way(post(b""))
    way(Asked("GET", "/rpc.php", "fail=1"))
    assert counted == [("/rpc.php", 0), ("/rpc.php", -1)]
