"""What all addresses of the REST API have in common: one form of errors, limits, conditions, order, description."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import Settings

from accounting.models import Note
from portal.models import ApiToken, Host, User
from portal.people.api_tokens import revoke_all_tokens
from portal.rest import VERSION
from tests.support.accounting_factories import make_host, make_note
from tests.support.rest_api import bearer, call, errors_of

pytestmark = pytest.mark.django_db

API = "/api/v1/"


@pytest.fixture
def headers(studio: Host) -> dict[str, str]:
    return bearer(studio.owner)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["no-such-thing/", "no-such-thing", "hosts/attic/", "../v2/days/", "../../api/"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_an_unknown_address_is_answered_with_problem_details(address: str, method: str) -> None:
    path = f"{API}{address}".replace("v1/../", "").replace("api/../", "")
    reply = Client(enforce_csrf_checks=True).generic(method, path)
    assert (reply.status_code, reply.headers["Content-Type"]) == (404, "application/problem+json")
    assert json.loads(reply.content) == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no such address. All are listed at /api/v1/.",
    }


@pytest.mark.parametrize(
    ("address", "location"),
    [
        ("batches?limit=1", "batches/?limit=1"),
        ("hosts/7", "hosts/7/"),
        ("hosts?%0d%0aA:%3F", "hosts/?%0d%0aA:%3F"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_address_without_its_final_slash_leads_to_the_one_with_it(method: str, address: str, location: str) -> None:
    """By a status that keeps the method and the body."""
    reply = Client().generic(method, API + address)
    assert (reply.status_code, reply.headers["Location"]) == (308, API + location)


@pytest.mark.parametrize(
    ("method", "address", "body", "status", "detail"),
    [
        ("GET", "hosts/0/", None, 404, "There is no such computer of yours."),
        ("GET", "batches/0/", None, 404, "There is nothing at this address, or it is not yours."),
        ("POST", "hosts/", {}, 405, 'Method "POST" not allowed.'),
        ("POST", "batches/", "{", 400, re.compile("JSON parse error")),
        ("POST", "batches/", '{"app": NaN}', 400, re.compile("JSON parse error")),
        ("POST", "batches/?limit=1", {}, 400, "limit: Unknown parameter. There are: none."),
        ("GET", "hosts/?limit=1&limit=2", None, 400, "limit: Give it once."),
        ("GET", "hosts/?limit=", None, 400, "limit: A valid integer is required."),
        ("GET", "hosts/?is_retired=perhaps", None, 400, "is_retired: Must be a valid boolean."),
        ("GET", "tasks/?app=%00", None, 400, "app: Null characters are not allowed."),
    ],
)
def test_every_refusal_is_a_problem_in_words(
    submitter: User, method: str, address: str, body: Any, status: int, detail: Any
) -> None:
    problem = call(method, API + address, bearer(submitter), body, status)
    assert problem["type"] == "about:blank"
    assert re.search(detail, problem["detail"]) if isinstance(detail, re.Pattern) else problem["detail"] == detail


def test_each_refused_value_is_named_by_its_path(submitter: User) -> None:
    body = {"app": "", "jobs": "many", "defaults": [], "exact_names": "perhaps"}
    problem = call("POST", f"{API}batches/", bearer(submitter), body, 400)
    assert set(errors_of(problem)) == {"app", "jobs", "defaults", "exact_names"}
    assert problem["detail"].endswith(" And 3 more.")


def test_a_body_of_another_kind_or_without_a_length_is_refused(submitter: User) -> None:
    token = bearer(submitter)
    xml = Client().generic("POST", f"{API}batches/", "<a/>", "application/xml", headers=token)
    assert (xml.status_code, xml.headers["Content-Type"]) == (415, "application/problem+json")
    chunked: dict[str, Any] = {"CONTENT_LENGTH": ""}
    reply = Client().generic("POST", f"{API}batches/", "{}", "application/json", headers=token, **chunked)
    assert (reply.status_code, json.loads(reply.content)["title"]) == (400, "Bad Request")


def test_a_query_of_thousands_of_parameters_is_a_problem_too(headers: dict[str, str]) -> None:
    query = "&".join(f"x{number}=1" for number in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1))
    assert call("GET", f"{API}hosts/?{query}", headers, status=400)["title"] == "Bad Request"


def test_a_fault_of_the_site_is_a_problem_without_its_details(
    headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("accounting.rest.views.own_hosts", fail)
    reply = Client(raise_request_exception=False).get(f"{API}hosts/", headers=headers)
    assert (reply.status_code, reply.headers["Content-Type"]) == (500, "application/problem+json")
    assert b"secret" not in reply.content


# --- limits ----------------------------------------------------------------------------------------------------------


def limit_of(reply: Any) -> tuple[str, str]:
    """The policy, and what remains, without the seconds."""
    remaining, _, secs = reply.headers["RateLimit"].rpartition(";t=")
    assert 1 <= int(secs) <= 60
    return reply.headers["RateLimit-Policy"], remaining


def test_requests_are_limited_per_volunteer_and_answers_say_what_is_left(
    studio: Host, bob: User, settings: Settings
) -> None:
    settings.API_REQUESTS_PER_MINUTE = 3
    one, other, his = bearer(studio.owner), bearer(studio.owner), bearer(bob)
    replies = [Client().get(f"{API}hosts/", headers=token) for token in (one, other, one, other, one, his)]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 429, 429, 200]
    assert [limit_of(reply) for reply in replies] == [
        ('"minute";q=3;w=60', f'"minute";r={left}') for left in (2, 1, 0, 0, 0, 2)
    ]
    spent = replies[3]
    assert 1 <= int(spent.headers["Retry-After"]) <= 60
    assert json.loads(spent.content) == {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "Too many requests.",
        "violated-policies": ["minute"],
    }


def test_who_is_not_let_in_learns_nothing_of_limits(headers: dict[str, str]) -> None:
    assert "RateLimit" not in Client().get(f"{API}hosts/").headers


# --- conditions ------------------------------------------------------------------------------------------------------


def test_what_has_not_changed_is_not_sent_again(studio: Host, headers: dict[str, str]) -> None:
    first = Client().get(f"{API}hosts/", headers=headers)
    known = {**headers, "If-None-Match": first.headers["ETag"]}
    again = Client().get(f"{API}hosts/", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Cache-Control"] == first.headers["Cache-Control"] == "private, no-cache"
    assert {"RateLimit", "Vary"} <= set(again.headers)
    Host.objects.filter(pk=studio.pk).update(given_name="attic")
    changed = Client().get(f"{API}hosts/", headers=known)
    assert (changed.status_code, json.loads(changed.content)["results"][0]["name"]) == (200, "attic")
    assert changed.headers["ETag"] != first.headers["ETag"]


def test_a_condition_opens_nothing_to_others(studio: Host, headers: dict[str, str], bob: User) -> None:
    etag = Client().get(f"{API}hosts/{studio.pk}/", headers=headers).headers["ETag"]
    for sent, status in ((bearer(bob), 404), ({}, 401)):
        assert Client().get(f"{API}hosts/{studio.pk}/", headers={**sent, "If-None-Match": etag}).status_code == status
        assert Client().get(f"{API}hosts/{studio.pk}/", headers={**sent, "If-None-Match": "*"}).status_code == status
    revoke_all_tokens(studio.owner)
    assert Client().get(f"{API}hosts/", headers={**headers, "If-None-Match": etag}).status_code == 401


def test_a_condition_that_does_not_hold_is_a_problem(headers: dict[str, str]) -> None:
    problem = call("GET", f"{API}hosts/", {**headers, "If-Match": '"another"'}, status=412)
    assert problem["title"] == "Precondition Failed"


def test_a_head_has_the_fields_of_a_get_and_no_body(headers: dict[str, str]) -> None:
    get, head = (getattr(Client(), method)(f"{API}hosts/", headers=headers) for method in ("get", "head"))
    assert (head.status_code, head.content, head.headers["ETag"]) == (200, b"", get.headers["ETag"])


def test_options_are_for_those_with_a_token_alone(headers: dict[str, str]) -> None:
    allowed = Client().options(f"{API}hosts/", headers=headers)
    assert (allowed.status_code, allowed.headers["Allow"]) == (200, "GET, HEAD, OPTIONS")
    assert Client().options(f"{API}hosts/").status_code == 401


@pytest.mark.parametrize(
    ("address", "status"),
    [("days/", 200), ("days/?form=2026-03-01", 400), ("hosts/0/", 404)],
)
def test_no_cache_gives_an_answer_to_another_person(headers: dict[str, str], address: str, status: int) -> None:
    for sent in (headers, {}):
        reply = Client().get(API + address, headers=sent)
        assert reply.status_code == (status if sent else 401)
        is_kept = reply.status_code == 200
        assert reply.headers["Cache-Control"] == ("private, no-cache" if is_kept else "private, no-store")
        assert {"Authorization", "Cookie"} <= {name.strip() for name in reply.headers["Vary"].split(",")}


def test_a_browser_keeps_nothing_of_what_its_visitor_reads(client: Client, studio: Host) -> None:
    client.force_login(studio.owner)
    assert client.get(f"{API}hosts/").headers["Cache-Control"] == "private, no-store"


# --- lists -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["hosts/?", "notes/?from=2026-03-01&to=2026-03-31&"])
@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_pages_of_either_order_give_all_rows_once(
    studio: Host, headers: dict[str, str], address: str, limit: int
) -> None:
    for number in range(3):
        make_host(studio.owner, f"node-{number}")
        make_note(studio, f"kind{number}", "2026-03-02", detail="cpu_ec", amount=number)
    orders = []
    for order in ("oldest", "newest"):
        ids: list[int] = []
        following = f"{settings.SITE_URL}{API[1:]}{address}limit={limit}&order={order}"
        while following:
            page = call("GET", following.removeprefix(settings.SITE_URL.rstrip("/")), headers)
            ids += [row["id"] for row in page["results"]]
            following = page["next"]
        orders.append(ids)
    assert orders[0] == sorted(set(orders[0])) == orders[1][::-1] and len(orders[0]) >= Note.objects.count()


@pytest.mark.parametrize("cursor", ["0", str(2**63 - 1)])
@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("name", ["hosts", "tasks", "projects", "notes", "batches", "experiments"])
def test_a_cursor_beyond_the_last_row_ends_the_list(submitter: User, name: str, order: str, cursor: str) -> None:
    page = call("GET", f"{API}{name}/?order={order}&cursor={cursor}", bearer(submitter))
    assert page == {"next": None, "results": []}


# --- the description -------------------------------------------------------------------------------------------------


ADDRESSES = """
days/ sums/ hosts/ hosts/{id}/ tasks/ tasks/{id}/ projects/ projects/{id}/ notes/
batches/ batches/{id}/ batches/{id}/cancel/ batches/{id}/retire/ batches/{id}/outputs/ batches/{id}/outputs/{output}/
batches/{id}/forecast/ batches/{id}/messages/ project-preferences/ files/ files/{name}/
scripts/ scripts/{name}/ scripts/{name}/use/ blocks/ blocks/{id}/ reserved-jobs/
app-versions/ app-versions/{id}/steps/ app-version-drafts/ app-version-drafts/{id}/ app-version-drafts/{id}/release/
app-version-drafts/{id}/files/{name}/
experiments/ experiments/{id}/ experiments/{id}/runs/{number}/
"""


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    reply = Client().get(f"{API}schema/", headers={"Accept": "application/vnd.oai.openapi+json"})
    schema: dict[str, Any] = json.loads(reply.content)
    return schema


def test_the_description_has_every_address_and_its_token(description: dict[str, Any]) -> None:
    assert set(description["paths"]) == {f"{API}{path}" for path in ADDRESSES.split()}
    assert description["info"]["version"] == VERSION
    assert description["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_every_operation_documents_its_problems(description: dict[str, Any]) -> None:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            responses = operation["responses"]
            needed = {"400", "401", "403", "429", "503", *(["404"] if "{" in path else [])}
            assert needed <= set(responses), (method, path)
            assert all(response["content"] == problem for status, response in responses.items() if status >= "400")
            assert method != "get" or "304" in responses


def test_a_token_without_the_scope_of_an_address_opens_it_nowhere(description: dict[str, Any], submitter: User) -> None:
    token = bearer(submitter, ApiToken.Scope.NOTES)
    for path, methods in description["paths"].items():
        for method in methods:
            status = Client().generic(method.upper(), re.sub(r"\{\w+\}", "1", path), headers=token).status_code
            assert status == (200 if path == f"{API}notes/" else 403), (method, path)
