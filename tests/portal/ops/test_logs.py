"""Log lines say what happened and to which request or task, in UTC, and never a secret."""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Callable

import pytest
import structlog
from celery import shared_task
from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from django.utils.http import int_to_base36

from portal.models import ClientKey, User
from portal.ops import logs
from portal.wire import credentials

LogLines = Callable[[], list[dict[str, object]]]
PASSWORD = "alice's secret"


def failing(request: HttpRequest, token: str) -> HttpResponse:
    logging.getLogger("some.library").warning("looked at %s", token)
    raise ValueError(f"cannot use {request.POST.get('password_hash')}")


urlpatterns = [path("fail/<token>/", failing), path("", include("portal.urls"))]


def test_a_page_has_one_line_with_the_id_that_its_reply_carries(client: Client, log_lines: LogLines) -> None:
    reply = client.get("/nowhere/?q=1", headers={"user-agent": "u" * 300})
    (line,) = log_lines()
    assert line["request_id"] == reply.headers["X-Request-ID"]
    assert (line["event"], line["method"], line["path"], line["status"]) == ("request", "GET", "/nowhere/", 404)
    assert line["user_agent"] == "u" * 100
    assert line["bytes_out"] == len(reply.content)


def test_times_are_utc_to_the_millisecond(client: Client, log_lines: LogLines) -> None:
    client.get("/nowhere/")
    logging.getLogger("some.library").warning("look")
    now = dt.datetime.now(dt.UTC)
    for line in log_lines():
        written = dt.datetime.strptime(str(line["time"]), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=dt.UTC)
        assert dt.timedelta() <= now - written + dt.timedelta(milliseconds=1) < dt.timedelta(minutes=5)


@pytest.mark.urls(__name__)
def test_lines_of_libraries_carry_the_requests_id(log_lines: LogLines) -> None:
    Client(raise_request_exception=False).get("/fail/abc/")
    library, failure, request = log_lines()
    assert (library["logger"], library["event"]) == ("some.library", "looked at abc")
    assert failure["logger"] == "django.request"
    assert "ValueError" in str(failure["exception"])
    assert library["request_id"] == failure["request_id"] == request["request_id"]


def test_lines_of_a_task_carry_its_id_and_the_next_ones_do_not(log_lines: LogLines) -> None:
    @shared_task(name="tests.say")
    def say() -> None:
        structlog.get_logger("tests").info("said", answer=42)

    task_id = say.apply().id
    structlog.get_logger("tests").info("after")
    said, *_, after = log_lines()
    assert (said["event"], said["answer"], said["task"], said["task_id"]) == ("said", 42, "tests.say", task_id)
    assert "task_id" not in after


@pytest.mark.urls(__name__)
@pytest.mark.django_db(transaction=True)
def test_no_secret_reaches_the_log(alice: User, log_lines: LogLines) -> None:
    digest = credentials.client_password_hash(PASSWORD, alice.email)
    key = credentials.new_client_key()
    ClientKey.objects.create(user=alice, key_hash=credentials.key_hash(key), hint=key[:4])
    reset = f"{int_to_base36(alice.pk)}-{default_token_generator.make_token(alice)}"
    visitor = Client(raise_request_exception=False)
    refused = "Upper@Example.org"

    visitor.post("/account/login/", {"login": alice.email, "password": PASSWORD})
    session, csrf = visitor.cookies["sessionid"].value, "c" * 20
    visitor.get("/home/", headers={"authorization": f"Bearer {key}", "x-csrftoken": csrf})
    visitor.get(f"/account/password/reset/key/{reset}/")
    visitor.get(f"/no/such/page/{reset}/?key={key}")
    visitor.get("/lookup_account.php", {"email_addr": alice.email, "passwd_hash": digest})
    visitor.get("/create_account.php", {"email_addr": "new@example.org", "passwd_hash": digest, "user_name": "New"})
    for secrets in (
        f"<authenticator>{key}</authenticator>",
        f"<name>{alice.email}</name><password_hash>{digest}</password_hash>",
    ):
        visitor.post("/rpc.php", f"<acct_mgr_request>{secrets}</acct_mgr_request>", "text/xml")
    visitor.post(f"/fail/{key}/", {"password_hash": digest})
    with transaction.atomic(), pytest.raises(IntegrityError) as broken, transaction.atomic():
        User.objects.create(email=refused, client_password=PASSWORD, password="plain")
    logging.getLogger("some.library").error("it broke", exc_info=broken.value)
    structlog.get_logger("tests").info("attached", authenticator="short", password="pw-1", account_key="k-1", why=key)

    lines = log_lines()
    assert len([line for line in lines if line["event"] == "request"]) == 9
    text = "\n".join(map(str, lines))
    assert "user_email_is_lower_case" in text
    for secret in (PASSWORD, digest, key, session, csrf, reset.split("-", 1)[1], "short", "pw-1", "k-1", refused):
        assert secret not in text, secret
    # Nor what the query strings held.
    assert alice.email not in text


def test_an_address_cannot_forge_a_line(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure({"json": False, "level": "INFO"})
    client.get("/x%0A12:00:00.000%20GET%20/forged%20200%E2%80%A8")
    logs.configure(settings.LOGGING)
    (line,) = capsys.readouterr().err.splitlines()
    assert "GET /x?12:00:00.000 GET" in line


def test_numbers_are_no_secrets(log_lines: LogLines) -> None:
    structlog.get_logger("tests").info("tidied", sessions=3, password_checks=None)
    assert (log_lines()[0]["sessions"], log_lines()[0]["password_checks"]) == (3, None)


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("password", True),
        ("passwd_hash", True),
        ("authenticator", True),
        ("account_key", True),
        ("csrf_token", True),
        ("session_id", True),
        ("project", False),
        ("host_id", False),
        ("keyword", False),
    ],
)
def test_fields_with_a_secrets_name_are_hidden(log_lines: LogLines, name: str, hidden: bool) -> None:
    structlog.get_logger("tests").info("seen", **{name: "value"})
    assert log_lines()[0][name] == ("[hidden]" if hidden else "value")


def test_a_terminal_gets_text(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure({"json": False, "level": "INFO"})
    logs.log_request({"method": "GET", "path": "/home/", "status": 200, "ms": 1.5, "request_id": "ab12"})
    structlog.get_logger("tests").info("attached", password="pw-1")
    request, attached = capsys.readouterr().err.splitlines()
    logs.configure(settings.LOGGING)
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} GET /home/ 200 1\.5 ms ab12", request)
    assert "attached" in attached
    assert "pw-1" not in attached


@pytest.mark.parametrize("value", [10**30, "\ud800", "\x7f\n", "ü"], ids=["digits", "surrogate", "controls", "letter"])
def test_a_request_s_line_is_one_of_ascii_whatever_came(log_lines: LogLines, value: object) -> None:
    logs.log_request({"method": "POST", "path": "/rpc.php", "status": 413, "ms": 1.5, "seen": value})
    assert log_lines()[0]["seen"] == value
