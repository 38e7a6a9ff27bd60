"""Projects are queried over real sockets; faults of one are recorded, and do not affect others."""

from __future__ import annotations

import datetime as dt
import gzip
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_network
from typing import Any

import pytest
from pytest_django import Settings

from credit.engine.cross_project import Factor
from credit.models import AppVersion
from extras.central_factors.collect import EVERY, KEPT, Collected, average, collect, known_factors
from extras.central_factors.models import CollectedExport, FactorList
from extras.central_factors.tasks import collect_factors
from extras.central_factors.wire import MAX_BODY_BYTES, factors_document
from tests.support.credit_engine_facts import about
from tests.support.credit_factories import NOON, make_app, make_version
from tests.support.raw_server import RawServer, by_path, path_of, reply

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)


def row(app: str, plan_class: str, scale: object, credit: object, more: str = "") -> str:
    return (
        f"<app_version><platform>linux</platform><app_name>{app}</app_name><version_num>1</version_num>"
        f"<plan_class>{plan_class}</plan_class><pfc_n>500</pfc_n><pfc_avg>2</pfc_avg><pfc_scale>{scale}</pfc_scale>"
        f"<expavg_credit>{credit}</expavg_credit><expavg_time>{NOON.timestamp()}</expavg_time>{more}</app_version>"
    )


def export(*rows: str) -> bytes:
    return f"<app_versions>{''.join(rows)}</app_versions>".encode()


GOOD = export(row("a", "", 1, 100), row("a", "cuda", 0.2, 300))


@pytest.fixture
def servers(settings: Settings) -> Iterator[list[RawServer]]:
    """Two projects, whose answers may be changed: the second one misbehaves in some tests."""
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    with ExitStack() as stack:
        found = [stack.enter_context(RawServer(by_path(app_versions=reply(GOOD)))) for _ in range(2)]
        settings.CENTRAL_PROJECTS = [server.url for server in found]
        yield found


def says(server: RawServer, body: bytes, *headers: str, status: str = "200 OK") -> None:
    server._answer = by_path(app_versions=reply(body, *headers, status=status))


def cuda(now: dt.datetime = NOON) -> float | None:
    known = known_factors(now)
    assert known is not None
    return {factor.plan_class: factor.scale for factor in known.factors if factor.processor_type == "NVIDIA"}.get(
        "cuda"
    )


def test_exports_are_collected_and_averaged(servers: list[RawServer]) -> None:
    says(servers[1], export(row("b", "", 1, 100), row("b", "cuda", 0.4, 100)))
    assert collect(NOON) == Collected(2, 0)
    # (0.2 × 300 + 0.4 × 100) / 400 = 100 / 400
    assert cuda() == about(0.25)
    assert path_of(servers[0].requests[0]) == "/app_versions.php?xml=1"
    one = CollectedExport.objects.get(url=servers[0].url)
    assert (one.asked_at, one.read_at, one.nversions, one.ncounted, one.problem) == (NOON, NOON, 2, 2, None)


def test_an_export_of_the_largest_size_is_read(servers: list[RawServer]) -> None:
    room = MAX_BODY_BYTES - len(GOOD)
    says(servers[0], GOOD.replace(b"</app_versions>", b" " * room + b"</app_versions>"))
    assert collect(NOON) == Collected(2, 0)


def test_a_project_with_two_addresses_counts_once(servers: list[RawServer], settings: Settings) -> None:
    host = servers[0].url.partition("://")[2]
    settings.CENTRAL_PROJECTS = [servers[0].url, f"HTTP://{host}", f"https://{host}"]
    assert collect(NOON) == Collected(1, 0)
    settings.PROJECT_URL = "https://example.org/project/"
    settings.CENTRAL_PROJECTS = ["http://example.org/project/", "https://www.EXAMPLE.org:443/project/"]
    assert collect(NOON + DAY) == Collected(0, 0)


@pytest.mark.parametrize(
    ("body", "headers", "status", "problem"),
    [
        (b"", [], "404 Not Found", "answered with status 404"),
        (b"<html></html>", [], "200 OK", "no element app_versions"),
        (GOOD[:-10], [], "200 OK", "cut off"),
        (b"<app_versions>" + b" " * MAX_BODY_BYTES + b"</app_versions>", [], "200 OK", "more than the limit"),
        (gzip.compress(bytes(MAX_BODY_BYTES * 4)), ["Content-Encoding: gzip"], "200 OK", "more than the limit"),
        (b"\xff\xfe" * 99, [], "200 OK", "no element app_versions"),
    ],
)  # fmt: skip
def test_one_bad_project_blocks_no_other_and_what_it_said_last_is_kept(
    servers: list[RawServer], body: bytes, headers: list[str], status: str, problem: str
) -> None:
    says(servers[1], export(row("b", "", 1, 100), row("b", "cuda", 0.4, 100)))
    collect(NOON)
    says(servers[1], body, *headers, status=status)
    says(servers[0], export(row("a", "", 1, 100), row("a", "cuda", 0.6, 300)))
    assert collect(NOON + DAY) == Collected(2, 1)
    assert collect(NOON + 2 * DAY) == Collected(2, 1)
    bad = CollectedExport.objects.get(url=servers[1].url)
    assert problem in str(bad.problem) and (bad.problem_since, bad.read_at) == (NOON + DAY, NOON)
    # Both are of NOON, so both weigh less by now, equally: (0.6 × 300 + 0.4 × 100) / 400
    assert cuda(NOON + 2 * DAY) == about(0.55)
    says(servers[1], GOOD)
    collect(NOON + 3 * DAY)
    bad.refresh_from_db()
    assert (bad.problem, bad.problem_since) == (None, None)


def test_a_project_that_does_not_answer_for_a_month_counts_no_more(servers: list[RawServer]) -> None:
    collect(NOON)
    later = NOON + KEPT + DAY
    for server in servers:
        says(server, b"")
    assert collect(later) == Collected(2, 2)
    assert cuda(later) is None


def test_private_addresses_are_not_asked(servers: list[RawServer], settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = []
    assert collect(NOON) == Collected(2, 2)
    assert "not public" in str(CollectedExport.objects.all()[0].problem) and servers[0].requests == []


def test_each_is_asked_once_a_day(servers: list[RawServer]) -> None:
    collect(NOON)
    assert collect(NOON + dt.timedelta(hours=1)) == Collected(0, 0)
    assert collect(NOON + EVERY) == Collected(2, 0)
    assert collect(NOON + EVERY, is_due=True) == Collected(2, 0)


def test_what_was_left_out_is_shown(servers: list[RawServer]) -> None:
    says(servers[0], export(row("a", "", 1, 100), row("a", "cuda", "1e304", 300), row("a", "ati", 0.5, "nan")))
    collect(NOON)
    one = CollectedExport.objects.get(url=servers[0].url)
    assert one.problem is None and one.refused.startswith(
        "no. 2: pfc_scale: not a decimal number from 0 to 100; no. 3: "
    )
    assert (one.nversions, one.ncounted) == (1, 0)


def test_a_project_that_is_no_longer_in_the_settings_is_forgotten(servers: list[RawServer], settings: Settings) -> None:
    collect(NOON)
    settings.CENTRAL_PROJECTS = [servers[1].url]
    collect(NOON + DAY)
    assert [export.url for export in CollectedExport.objects.all()] == [servers[1].url]
    settings.CENTRAL_PROJECTS = []
    collect(NOON + 2 * DAY)
    assert not CollectedExport.objects.exists() and not FactorList.objects.exists()


def test_our_own_project_is_among_those_averaged_but_not_what_it_received(
    servers: list[RawServer], settings: Settings
) -> None:
    settings.CENTRAL_PROJECTS = [settings.PROJECT_URL]
    app = make_app()
    make_version(app, pfc_n=100, pfc_avg=2, pfc_scale=1, expavg_credit=10, expavg_at=NOON)
    gpu: dict[str, Any] = {
        "processor_type": "NVIDIA",
        "gpu_usage": 1,
        "plan_class": "cuda",
        "expavg_credit": 10,
        "expavg_at": NOON,
    }
    version = make_version(app, pfc_n=100, pfc_avg=20, pfc_scale=0.1, **gpu)
    assert collect(NOON) == Collected(0, 0)
    assert cuda() == about(0.1)
    AppVersion.objects.filter(pk=version.pk).update(is_scale_received=True)
    average(NOON)
    assert cuda() is None


def test_the_central_server_is_asked_for_its_averages(servers: list[RawServer], settings: Settings) -> None:
    factors = [Factor("NVIDIA", "cuda", 0.3, 1000.0, 4, 9), Factor("NVIDIA", None, 0.35, 2000.0, 5, 12)]
    servers[0]._answer = by_path(version_factors=reply(factors_document(factors, NOON.timestamp())))
    settings.CENTRAL_PROJECTS, settings.CENTRAL_SERVER = [], f"{servers[0].url}project/"
    assert collect(NOON) == Collected(1, 0)
    assert path_of(servers[0].requests[0]) == "/project/version_factors.xml"
    known = known_factors(NOON)
    assert known is not None and (known.factors, known.source) == (factors, settings.CENTRAL_SERVER)
    # If one breaks, its last answer is kept for a month.
    servers[0]._answer = by_path(version_factors=reply(b"<version_factors><factor></factor></version_factors>"))
    assert collect(NOON + DAY) == Collected(1, 1)
    known = known_factors(NOON + DAY)
    assert known is not None and known.factors == factors and "processor" not in known.source and known.problem
    assert known_factors(NOON + KEPT + DAY) is None


def test_the_task_does_nothing_where_nothing_is_to_be_asked(servers: list[RawServer], settings: Settings) -> None:
    settings.CENTRAL_PROJECTS = []
    collect_factors()
    assert servers[0].requests == [] and not FactorList.objects.exists()
    settings.CENTRAL_PROJECTS = [servers[0].url]
    collect_factors()
    assert len(servers[0].requests) == 1 and FactorList.objects.get().factors
