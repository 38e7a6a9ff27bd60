"""What people and scripts see when the database is lost in the middle of a page."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]
handler500 = "portal.web.unavailable.server_error"
_faults: list[str] = []


def page(request: HttpRequest) -> HttpResponse:
    with connection.cursor() as cursor:
        cursor.execute(_faults.pop() if _faults else "SELECT 1")
    return HttpResponse("done")


urlpatterns = [path("page/", page), path("api/v1/page/", page)]
LOST = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.fixture
def visitor() -> Iterator[Client]:
    yield Client(raise_request_exception=False)
    _faults.clear()


def test_a_page_that_only_reads_is_made_once_more(visitor: Client) -> None:
    _faults[:] = [LOST]
    assert visitor.get("/page/").content == b"done"


def test_what_may_have_changed_something_is_not_repeated(visitor: Client) -> None:
    _faults[:] = [LOST, LOST]
    reply = visitor.post("/page/")
    assert (reply.status_code, len(_faults)) == (503, 1)
    assert reply.headers["Retry-After"] == "30"
    assert "cannot reach its database just now. Try again in a minute." in reply.content.decode()
    _faults.clear()
    assert visitor.post("/page/").status_code == 200


def test_people_are_told_in_their_language(visitor: Client) -> None:
    _faults[:] = [LOST, LOST]
    reply = visitor.get("/page/", headers={"Accept-Language": "de"})
    assert reply.status_code == 503
    assert "Die Website erreicht ihre Datenbank gerade nicht." in reply.content.decode()


def test_scripts_are_told_in_json(visitor: Client) -> None:
    _faults[:] = [LOST, LOST]
    reply = visitor.get("/api/v1/page/")
    assert (reply.status_code, reply.headers["Content-Type"]) == (503, "application/problem+json")
    assert json.loads(reply.content)["detail"].startswith("The site cannot reach its database just now.")


def test_a_fault_of_ours_is_still_one(visitor: Client) -> None:
    _faults[:] = ["SELECT 1 / 0"]
    assert visitor.get("/page/").status_code == 500
