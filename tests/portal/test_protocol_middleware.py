"""BOINC clients are answered past all middleware for people, and never with what makes them hang."""

from __future__ import annotations

import io
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.urls import path
from pytest_django import Settings

from portal import metrics
from portal.short_way import SiteHandler

LogLines = Callable[[], list[dict[str, object]]]
Handler = WSGIHandler | SiteHandler


def answer(request: HttpRequest) -> HttpResponse:
    """Says what it got."""
    if request.GET.get("fail"):
        raise ValueError(request.GET["fail"])
    seen = {"length": len(request.body), "address": request.META["REMOTE_ADDR"], "session": hasattr(request, "session")}
    return JsonResponse(seen)


def asking(request: HttpRequest) -> HttpResponse:
    """Needs Django's connection."""
    return HttpResponse(str(ContentType.objects.count()))


def rendered_late(request: HttpRequest) -> HttpResponse:
    return SimpleTemplateResponse("csp_test_no_such_template.html")


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(hasattr(request, "session")))


urlpatterns = [
    path("rpc.php", answer),
    path("lookup_account.php", answer),
    path("create_account.php", rendered_late),
    path("project/lookup_account.php", asking),
    path("page", page),
]
pytestmark = pytest.mark.urls(__name__)


@pytest.fixture
def visitor() -> Client:
    """A client that gets the reply that the site gives when a view fails."""
    return Client(raise_request_exception=False)


def error_of(reply: object) -> tuple[str, int, str]:
    """Root element, error number and sentence of a BOINC error reply."""
    assert isinstance(reply, HttpResponse)
    root = ElementTree.fromstring(reply.content)
    return root.tag, int(root.findtext("error_num", "0")), root.findtext("error_msg", "")


def test_a_protocol_request_passes_sessions_cookies_redirects_and_policies(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    reply = client.post("/rpc.php", b"<x/>", "application/x-www-form-urlencoded", headers={"host": "evil.example"})
    assert reply.status_code == 200
    assert reply.json() == {"length": 4, "address": "127.0.0.1", "session": False}
    assert not reply.cookies
    assert set(reply.headers) == {"Content-Type", "Content-Length"}


def test_a_page_goes_the_long_way(client: Client) -> None:
    reply = client.get("/page")
    assert reply.content == b"True"
    assert "Content-Security-Policy" in reply.headers
    assert "X-Request-ID" in reply.headers


def test_a_failing_view_is_answered_by_an_error_that_clients_understand(visitor: Client) -> None:
    reply = visitor.get("/rpc.php?fail=1")
    assert reply.status_code == 200
    root, number, sentence = error_of(reply)
    assert (root, number) == ("acct_mgr_reply", -1)
    assert "try again" in sentence
    root, number, _ = error_of(visitor.get("/lookup_account.php?fail=1"))
    assert (root, number) == ("error", -1)


def test_a_view_that_fails_while_it_renders_is_caught_too(visitor: Client) -> None:
    reply = visitor.get("/create_account.php")
    assert (reply.status_code, error_of(reply)[1]) == (200, -1)


def test_an_address_without_a_view_is_answered_as_a_failure(visitor: Client) -> None:
    reply = visitor.get("/get_project_config.php")
    assert (reply.status_code, error_of(reply)[:2]) == (200, ("project_config", -1))


def test_a_body_over_the_limit_is_a_protocol_error(visitor: Client, settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert visitor.post("/rpc.php", b"x" * 1000, "text/xml").json()["length"] == 1000
    reply = visitor.post("/rpc.php", b"x" * 1001, "text/xml")
    assert reply.status_code == 200
    root, number, sentence = error_of(reply)
    assert (root, number) == ("acct_mgr_reply", -112)
    assert "1000 bytes" in sentence


@pytest.fixture(params=[WSGIHandler, SiteHandler])
def handler(request: pytest.FixtureRequest) -> Handler:
    """Django's handler, which Django's test client asks too, and the site's own, which has a short way."""
    made: Handler = request.param()
    return made


def served(handler: Handler, body: bytes, **environ: str) -> tuple[str, bytes]:
    """Status and reply of the site as a WSGI server gets them, for requests that Django's client cannot send.

    Django closes database connections at the start of such a request, so the test must be allowed to use them.
    """
    status = []

    def start_response(line: str, *_: object) -> Callable[[bytes], object]:
        status.append(line)
        return lambda _: None

    reply = handler(
        {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/rpc.php",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.input": io.BytesIO(body),
            "wsgi.url_scheme": "http",
            "wsgi.errors": io.StringIO(),
            **environ,
        },
        start_response,
    )
    return status[0], b"".join(reply)


@pytest.mark.django_db
def test_a_chunked_body_is_refused_as_the_server_loses_it(handler: Handler) -> None:
    status, body = served(handler, b"", HTTP_TRANSFER_ENCODING="chunked")
    assert status == "411 Length Required"
    assert b"<error_num>-1</error_num>" in body


@pytest.mark.django_db
@pytest.mark.parametrize("length", ["5", "99"])
def test_a_body_that_is_cut_off_is_refused(handler: Handler, length: str) -> None:
    status, body = served(handler, b"<x/>", CONTENT_LENGTH=length)
    assert status == "400 Bad Request"
    assert b"<acct_mgr_reply>" in body


@pytest.mark.django_db
def test_a_complete_body_is_taken(handler: Handler) -> None:
    assert served(handler, b"<x/>", CONTENT_LENGTH="4")[0] == "200 OK"
    assert served(handler, b"", CONTENT_LENGTH="0")[0] == "200 OK"
    assert served(handler, b"")[0] == "200 OK"


@pytest.mark.django_db
def test_both_ways_answer_and_log_alike(log_lines: LogLines) -> None:
    asked = [{}, {"QUERY_STRING": "fail=because"}, {"REQUEST_METHOD": "PUT"}, {"PATH_INFO": "/page"}]
    answers = [
        served(handler, b"<x/>", **{"CONTENT_LENGTH": "4", "REQUEST_METHOD": "POST"} | environ)
        for handler in (WSGIHandler(), SiteHandler())
        for environ in asked
    ]
    lines = [{**line, "ms": 0, "time": "", "request_id": ""} for line in log_lines()]
    assert [status for status, _ in answers[:4]] == ["200 OK", "200 OK", "405 Method Not Allowed", "403 Forbidden"]
    assert answers[:4] == answers[4:]
    assert len(lines) % 2 == 0
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]


@pytest.mark.django_db
def test_what_the_middleware_fails_with_is_a_server_error_on_both_ways(
    handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(metrics, "count_rpc")
    assert served(handler, b"", HTTP_HOST="localhost")[0] == "500 Internal Server Error"


@pytest.mark.django_db(transaction=True)
def test_the_short_way_gives_djangos_connection_back() -> None:
    connection.close()
    assert served(SiteHandler(), b"", PATH_INFO="/project/lookup_account.php")[0] == "200 OK"
    assert connection.connection is None


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    reply = client.generic(method, "/rpc.php")
    assert (reply.status_code, reply.headers["Allow"]) == (405, "GET, POST")


def test_the_address_is_the_servers_word_unless_a_proxy_is_trusted(client: Client, settings: Settings) -> None:
    forged = {"x-forwarded-for": "1.2.3.4, 5.6.7.8"}
    assert client.post("/rpc.php", headers=forged).json()["address"] == "127.0.0.1"
    settings.BEHIND_PROXY = True
    # The proxy appends whom it saw; what stands before that was sent along.
    assert client.post("/rpc.php", headers=forged).json()["address"] == "5.6.7.8"
    assert client.post("/rpc.php", headers={"x-forwarded-for": "2001:DB8::0:9"}).json()["address"] == "2001:db8::9"
    assert client.post("/rpc.php", headers={"x-forwarded-for": "x' OR 1"}).json()["address"] == "127.0.0.1"


def test_a_request_has_one_line_and_its_failure_another_with_the_same_id(visitor: Client, log_lines: LogLines) -> None:
    visitor.get("/rpc.php?fail=because", headers={"user-agent": "BOINC client (x86_64-pc-linux-gnu 7.20.5)"})
    failure, request = log_lines()
    assert failure["event"] == "protocol.failed"
    assert "ValueError" in str(failure["exception"])
    assert failure["request_id"] == request["request_id"]
    assert (request["event"], request["path"], request["status"]) == ("request", "/rpc.php", 200)
    assert (request["error_num"], request["bytes_in"]) == (-1, 0)
    assert request["user_agent"] == "BOINC client (x86_64-pc-linux-gnu 7.20.5)"


def test_the_proxys_request_id_is_taken_if_it_is_trusted_and_well_formed(
    client: Client, settings: Settings, log_lines: LogLines
) -> None:
    def id_for(given: str) -> object:
        client.post("/rpc.php", headers={"x-request-id": given})
        return log_lines()[-1]["request_id"]

    assert id_for("abcdef-0123") != "abcdef-0123"
    settings.BEHIND_PROXY = True
    assert id_for("abcdef-0123") == "abcdef-0123"
    assert id_for('"},{"forged":"line') != '"},{"forged":"line'
    assert id_for("x" * 65) != "x" * 65
