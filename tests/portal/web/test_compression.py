"""What people read is compressed on its way, what BOINC clients and archives have is not; and pages stay small."""

from __future__ import annotations

import datetime as dt
import gzip
import re
from pathlib import Path
from typing import Final

import pytest
from django.contrib.staticfiles import finders
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from accounting.ledger.partitions import create_months
from accounting.models import Day, ProjectDay, ProjectKeyword
from portal.models import User
from portal.web.compression import CompressionMiddleware
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.browser_visitor import give_work

pytestmark = pytest.mark.django_db

TEXT: Final = "A line of a page. " * 100


def through(response: HttpResponseBase) -> HttpResponseBase:
    """What a browser that takes gzip gets of this response."""
    request: HttpRequest = RequestFactory().get("/", headers={"Accept-Encoding": "gzip, br"})
    answer = CompressionMiddleware(lambda _request: response)(request)
    assert isinstance(answer, HttpResponseBase)
    return answer


def is_compressed(response: HttpResponseBase) -> bool:
    return response.headers.get("Content-Encoding") == "gzip"


@pytest.mark.parametrize(
    "kind", ["text/html; charset=utf-8", "text/csv", "application/json", "application/problem+json"]
)
def test_text_is_compressed(kind: str) -> None:
    response = through(HttpResponse(TEXT, content_type=kind))
    assert isinstance(response, HttpResponse)
    assert is_compressed(response) and gzip.decompress(response.content).decode() == TEXT
    assert "Accept-Encoding" in response.headers["Vary"]


@pytest.mark.parametrize("kind", ["application/zip", "application/gzip", "application/octet-stream", "image/png"])
def test_archives_programs_and_pictures_are_not(kind: str) -> None:
    assert not is_compressed(through(HttpResponse(TEXT, content_type=kind)))


def test_what_says_no_transform_is_left_alone() -> None:
    response = HttpResponse(TEXT, content_type="text/xml", headers={"Cache-Control": "public, no-transform"})
    assert not is_compressed(through(response))


def test_a_download_is_compressed_as_it_is_streamed() -> None:
    response = through(StreamingHttpResponse([TEXT.encode()] * 3, content_type="text/csv"))
    assert isinstance(response, StreamingHttpResponse)
    assert gzip.decompress(b"".join(response)).decode() == TEXT * 3


def test_equal_pages_have_different_lengths() -> None:
    """Who can have words of their own put into a page learns nothing of its secrets from its length (BREACH)."""
    lengths = set()
    for _ in range(20):
        response = through(HttpResponse(TEXT))
        assert isinstance(response, HttpResponse)
        lengths.add(len(response.content))
    assert len(lengths) > 1


def test_clients_get_their_replies_as_they_are(client: Client) -> None:
    reply = client.post("/rpc.php", b"<acct_mgr_request>", content_type="text/xml", headers={"Accept-Encoding": "gzip"})
    assert reply.content.startswith(b"<acct_mgr_reply>") and not is_compressed(reply)


def wire_kb(client: Client, path: str) -> float:
    """What a browser loads for the page and all that it names, in kB, as gzip makes it."""
    page = client.get(path, headers={"Accept-Encoding": "gzip"})
    assert page.status_code == 200 and is_compressed(page)
    text = gzip.decompress(page.content).decode()
    names = set(re.findall(r'(?:src|href)="/static/([^"?#]+)', text))
    files = [finders.find(re.sub(r"\.[0-9a-f]{12}(?=\.\w+$)", "", name)) for name in names]
    assert len(files) > 4 and all(files)
    (texts,) = re.findall(r'src="(/script-texts/[^"]+)"', text)
    parts = [Path(file).read_bytes() for file in files if file] + [client.get(texts).content]
    return (len(page.content) + sum(len(gzip.compress(part)) for part in parts)) / 1000


def test_the_landing_page_is_light(client: Client) -> None:
    today = timezone.now()
    for number in range(10):
        project = make_project(f"Project {number}", colour=number % 8, summary="Searches for what nobody has seen yet.")
        ProjectKeyword.objects.create(project=project, keyword=3, weight=1)
        for back in range(60):
            ProjectDay.objects.create(
                project=project,
                day=today.date() - dt.timedelta(days=back),
                cpu_time=back * 7_654_321_000,
                njobs_success=back,
                rolled_up_at=today,
            )
    cache.clear()
    assert wire_kb(client, "/") < 60


def test_a_history_of_a_year_is_light(signed_in: Client, alice: User) -> None:
    give_work(alice)
    host = make_host(alice, "server")
    last = timezone.now().date()
    days = [last - dt.timedelta(days=back) for back in range(10, 366)]
    for number in range(8):
        project = make_project(f"Project {number}", colour=number)
        credit(host, project, str(last), (1_234_567, 0, 3_600_000_000, 0, 1, 0))
        create_months(days[-1], last)
        Day.objects.bulk_create(
            Day(user=alice, day=day, project=project, host=host, cpu_ec=day.toordinal() * 7_919 * (number + 1) % 10**8,
                gpu_ec=0, cpu_time=3_600_000_000, gpu_time=0, njobs_success=1, njobs_error=0, flags=0)
            for day in days
        )  # fmt: skip
    assert wire_kb(signed_in, f"/history/?from={days[-1]}&to={last}&step=day") < 150


def test_home_is_light_with_many_computers(signed_in: Client, alice: User) -> None:
    # How little it asks the database: tests/accounting/home/test_pages.py.
    give_work(alice)
    many = [make_project(f"Project {number}", colour=number) for number in range(8)]
    today = timezone.now().date()
    for number in range(12):
        host = make_host(alice, f"server {number}", last=str(today))
        for project in many:
            credit(host, project, str(today), (1_234_567, 0, 3_600_000_000, 0, 1, 0))
    assert wire_kb(signed_in, "/home/") < 50


def test_chart_js_is_loaded_where_something_is_drawn_and_nowhere_else(signed_in: Client, alice: User) -> None:
    def loads(path: str) -> bool:
        return "chartjs/chart" in signed_in.get(path).content.decode()

    assert not any(loads(path) for path in ("/home/", "/history/", "/computers/", "/emulator/", "/news/"))
    give_work(alice)
    assert loads("/history/") and not loads("/home/")
