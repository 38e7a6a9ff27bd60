"""The REST API: what each address hands out, to whom, how it is paged, and what it refuses."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounting.engine.states import DayFlag
from accounting.models import Project, UserProject
from portal.models import ApiToken, Host, User
from tests.support.accounting_factories import credit, granted, make_host, make_note, make_project
from tests.support.rest_api import bearer, call, errors_of

pytestmark = pytest.mark.django_db

API = "/api/v1/"
RANGE = "from=2026-03-01&to=2026-03-31"
SCOPES = {
    "days/": "read:history",
    "sums/": "read:history",
    "hosts/": "read:hosts",
    "projects/": "read:projects",
    "notes/": "read:notes",
}


@pytest.fixture
def headers(alice: User) -> dict[str, str]:
    return bearer(alice)


@pytest.fixture
def worked(studio: Host) -> Host:
    """Two computers, two projects, four rows; one note."""
    alpha, beta = make_project("Alpha"), make_project("Beta")
    attic = make_host(studio.owner, "attic")
    credit(studio, alpha, "2026-03-02", (1_000_001, 2, 259_346_744, 1, 4, 1), flags=DayFlag.CAPPED)
    credit(studio, beta, "2026-03-02", (0, 333_333, 0, 999_999, 0, 2))
    credit(attic, alpha, "2026-03-09", (2**53 + 1, 0, 5, 0, 7, 0))
    credit(attic, beta, "2026-03-10", (5, 5, 5, 5, 5, 5))
    make_note(studio, "dropped", "2026-03-02", detail="cpu_ec", amount=5_000_000)
    return studio


def get(address: str, headers: dict[str, str], status: int = 200) -> Any:
    return call("GET", API + address, headers, status=status)


def test_days_are_the_rows_of_the_download(client: Client, worked: Host, headers: dict[str, str]) -> None:
    client.force_login(worked.owner)
    download = json.loads(b"".join(client.get(f"/history/history.json?{RANGE}")))
    assert get(f"days/?{RANGE}", headers) == {"next": None, "results": download["rows"]}
    assert len(download["rows"]) == 4


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_pages_of_any_size_give_all_rows_once(worked: Host, headers: dict[str, str], limit: int) -> None:
    whole = get(f"days/?{RANGE}", headers)["results"]
    seen, address = [], f"days/?{RANGE}&limit={limit}"
    while address:
        page = get(address, headers)
        assert 0 < len(page["results"]) <= limit
        seen += page["results"]
        address = (page["next"] or "").removeprefix(f"{settings.SITE_URL}api/v1/")
    assert seen == whole


def test_days_of_one_computer_or_project(worked: Host, headers: dict[str, str]) -> None:
    beta = Project.objects.get(name="Beta").pk
    results = get(f"days/?{RANGE}&host={worked.pk}&project={beta}", headers)["results"]
    assert [(row["day"], row["host"], row["project"]) for row in results] == [("2026-03-02", "studio", "Beta")]
    assert results[0]["gpu_credit"] == "0.333333"


def test_without_a_range_the_last_thirty_days_come(worked: Host, headers: dict[str, str]) -> None:
    today = timezone.now().date()
    gamma = make_project("Gamma")
    for back in (0, 29, 30):
        credit(worked, gamma, str(today - dt.timedelta(days=back)), (back + 1, 0, 0, 0, 0, 0))
    days = [row["day"] for row in get("days/", headers)["results"]]
    assert days == [str(today - dt.timedelta(days=29)), str(today)]


def test_sums_add_up_exactly(worked: Host, headers: dict[str, str]) -> None:
    sums = get(f"sums/?{RANGE}&step=week", headers)
    # Weeks of Monday 2 and Monday 9 March; 2**53 + 1 + 5 micro-credits in the second: more digits than a float holds.
    assert [(row["first"], row["last"]) for row in sums["results"]] == [
        ("2026-03-02", "2026-03-08"),
        ("2026-03-09", "2026-03-15"),
    ]
    assert [row["cpu_credit"] for row in sums["results"]] == ["1.000001", "9007199254.740998"]
    assert sums["total"]["cpu_credit"] == "9007199255.740999"
    assert sums["results"][0]["flags"] == ["capped"]
    for by in ("project", "host"):
        split = get(f"sums/?{RANGE}&step=month&by={by}", headers)
        assert len(split["results"]) == 2 and split["total"] == sums["total"]
        assert all(row[f"{by}_id"] for row in split["results"])


def test_hosts_say_their_groups_and_what_was_granted(worked: Host, headers: dict[str, str]) -> None:
    """1.5 and 2 credits at two projects; nothing is known of the other computer."""
    Host.objects.filter(pk=worked.pk).update(groups=["attic", "quiet"])
    for number, project in enumerate(Project.objects.order_by("pk")[:2]):
        granted(worked, project, number + 1, {"2026-03-02": [1_500_000, 2_000_000][number]})
    first, second = get("hosts/", headers)["results"]
    assert (first["groups"], first["granted_credit"]) == (["attic", "quiet"], "3.500000")
    assert (second["groups"], second["granted_credit"]) == ([], None)


def test_a_sum_covers_no_day_outside_the_range(worked: Host, headers: dict[str, str]) -> None:
    (row,) = get("sums/?from=2026-03-03&to=2026-03-09&step=month", headers)["results"]
    assert (row["first"], row["last"], row["jobs_succeeded"]) == ("2026-03-03", "2026-03-09", 7)


def test_hosts_are_ones_own_without_merged_records(worked: Host, headers: dict[str, str]) -> None:
    Host.objects.create(owner=worked.owner, domain_name="old", merged_into=worked)
    results = get("hosts/", headers)["results"]
    assert [host["name"] for host in results] == ["studio", "attic"]
    assert get(f"hosts/{worked.pk}/", headers) == results[0]
    assert (results[0]["ncpus"], results[0]["p_fpops"]) == (4, 4e9)
    assert not {"token", "host_cpid", "hardware_digest", "owner"} & set(results[0])


def test_projects_come_with_my_part_and_no_keys(worked: Host, headers: dict[str, str], bob: User) -> None:
    alpha = Project.objects.get(name="Alpha")
    UserProject.objects.create(user=worked.owner, project=alpha, total_ec=1_500_000, is_chosen=True, resource_share=50)
    UserProject.objects.create(user=bob, project=alpha, total_ec=9_000_000)
    results = {project["name"]: project for project in get("projects/", headers)["results"]}
    assert results["Alpha"]["total_credit"] == "1.500000" and results["Alpha"]["resource_share"] == 50
    assert results["Beta"]["total_credit"] == "0.000000" and results["Beta"]["is_chosen"] is False
    assert get(f"projects/{alpha.pk}/", headers) == results["Alpha"]
    assert not any("key" in name for name in results["Alpha"])


def test_notes_speak_in_sentences(worked: Host, headers: dict[str, str]) -> None:
    make_note(worked, "reset", "2026-03-05", project=Project.objects.get(name="Alpha"))
    page = get(f"notes/?{RANGE}&limit=1&order=newest", headers)
    assert page["results"][0]["happened"] == "The totals of Alpha started from zero again."
    (older,) = get(page["next"].removeprefix(f"{settings.SITE_URL}api/v1/"), headers)["results"]
    assert "5 credits for CPU work more than it could have done" in older["happened"]
    assert older["is_loss"] is True and older["host_id"] == worked.pk
    assert get(f"notes/?{RANGE}&host=999999", headers)["results"] == []


@pytest.mark.parametrize("address", [*SCOPES, "hosts/{host}/", "projects/{project}/"])
def test_a_token_reads_what_its_scope_says_and_nothing_else(worked: Host, address: str) -> None:
    needed = SCOPES[address.split("/")[0] + "/"]
    address = address.format(host=worked.pk, project=Project.objects.get(name="Alpha").pk)
    get(address, bearer(worked.owner, needed))
    others = [scope for scope in SCOPES.values() if scope != needed]
    assert f"no scope {needed}" in get(address, bearer(worked.owner, *others), status=403)["detail"]


@pytest.mark.parametrize("who", ["bob", "operator"])
def test_somebody_elses_data_is_not_there(request: pytest.FixtureRequest, worked: Host, who: str) -> None:
    theirs = bearer(request.getfixturevalue(who))
    for address in (f"days/?{RANGE}", f"sums/?{RANGE}", "hosts/", f"notes/?{RANGE}", f"days/?{RANGE}&host={worked.pk}"):
        assert get(address, theirs)["results"] == []
    get(f"hosts/{worked.pk}/", theirs, status=404)
    assert all(row["total_credit"] == "0.000000" for row in get("projects/", theirs)["results"])


@pytest.mark.parametrize("address", [*SCOPES, "hosts/1/", "projects/1/"])
@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", "Bearer cobble_wrong", "Bearer \xff", "Basic YTpi", "Token x"]
)
def test_nobody_gets_in_without_a_valid_token(db: None, address: str, value: str) -> None:
    reply = Client().get(API + address, headers={"Authorization": value})
    assert reply.status_code == 401
    assert reply.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("address", SCOPES)
def test_a_visitor_who_is_signed_in_needs_no_token(client: Client, worked: Host, address: str) -> None:
    client.force_login(worked.owner)
    assert client.get(API + address).status_code == 200


@pytest.mark.parametrize("address", [*SCOPES, "hosts/1/"])
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_changed(worked: Host, headers: dict[str, str], address: str, method: str) -> None:
    assert getattr(Client(), method)(API + address, headers=headers).status_code == 405


def test_a_revoked_token_is_refused_at_once(worked: Host, headers: dict[str, str]) -> None:
    get("hosts/", headers)
    ApiToken.objects.update(revoked_at=timezone.now())
    assert "not valid" in get("hosts/", headers, status=401)["detail"]


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("days/?form=2026-01-01", "form"),
        ("days/?from=yesterday", "from"),
        ("days/?from=2026-03-02&to=2026-03-01", "from"),
        ("days/?from=0001-01-01&to=2026-03-01", "from"),
        ("days/?limit=0", "limit"),
        ("days/?limit=1001", "limit"),
        ("days/?limit=1e999", "limit"),
        ("days/?host=99999999999999999999", "host"),
        ("days/?project=-1", "project"),
        ("days/?cursor=nonsense", "cursor"),
        ("days/?cursor=2026-03-01.1.99999999999999999999999", "cursor"),
        ("hosts/?cursor=%F0%9F%92%A5", "cursor"),
        ("hosts/?cursor=\u0663", "cursor"),
        ("hosts/?cursor=%00", "cursor"),
        ("sums/?step=year", "step"),
        ("sums/?by=fame", "by"),
        ("hosts/1/?limit=1", "limit"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_name(headers: dict[str, str], address: str, field: str) -> None:
    assert list(errors_of(get(address, headers, status=400))) == [field]


@pytest.mark.parametrize("address", ["days/?from=9999-12-31", "days/?to=0001-01-01", "notes/?to=9999-12-31"])
def test_days_at_the_ends_of_the_calendar_are_empty(headers: dict[str, str], address: str) -> None:
    assert get(address, headers)["results"] == []


def test_too_many_sums_ask_for_a_longer_step(
    worked: Host, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounting.rest.views.MAX_SUMS", 2)
    assert "longer step" in get(f"sums/?{RANGE}", headers, status=400)["detail"]
    get(f"sums/?{RANGE}&step=week", headers)


@pytest.mark.parametrize(
    ("address", "statements"),
    # The token with its user; then what the view reads.
    [("days/?" + RANGE, 6), ("sums/?" + RANGE, 2), ("hosts/", 2), ("projects/", 4), ("notes/?" + RANGE, 2)],
)
def test_the_cost_does_not_grow_with_the_data(
    worked: Host,
    headers: dict[str, str],
    address: str,
    statements: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    get(address, headers)  # notes the token's use
    for _ in range(2):
        with django_assert_num_queries(statements):
            get(address, headers)
        for number in range(20):
            host = make_host(worked.owner, f"node-{number}")
            credit(host, make_project(), "2026-03-04", (1, 1, 1, 1, 1, 1))
            make_note(host, "reset", "2026-03-04")
