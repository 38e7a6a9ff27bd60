"""Batches by the REST API and on their pages: who may do what, and what they get."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import Client

from credit.models import App, Batch, Workunit, WorkunitError
from portal.models import Host, User
from scheduler.lifecycle import assimilator
from scheduler.submission.submit import submit
from tests.support.batches_api import API, SUBMISSION
from tests.support.credit_factories import NOON
from tests.support.finished_jobs import DEFAULTS, finish
from tests.support.rest_api import bearer, call, errors_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def headers(submitter: User) -> dict[str, str]:
    return bearer(submitter)


def test_jobs_are_submitted_and_followed(app: App, headers: dict[str, str], submitter: User) -> None:
    made = call("POST", API, headers, SUBMISSION, 201)
    assert (made["workunits"], made["open"], made["tasks_unsent"], made["is_finished"]) == (2, 2, 4, False)
    assert Batch.objects.get().owner == submitter
    assert call("GET", f"{API}{made['id']}/", headers) == made
    assert call("GET", API, headers) == {"next": None, "results": [made]}


def test_a_repeated_submission_does_no_harm(app: App, headers: dict[str, str]) -> None:
    body = {**SUBMISSION, "request_id": "monday"}
    made = call("POST", API, headers, body, 201)
    assert call("POST", API, headers, body, 200) == made
    assert Workunit.objects.count() == 2
    refused = call("POST", API, headers, {**body, "jobs": [{}, {"command_line": "--corrected"}]}, 409)
    assert errors_of(refused) == {"request_id": "was used for another submission; give this one a different id"}


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"app": "beta"}, {"app": "There is no app of this name."}),
        ({"jobs": []}, {"jobs": "a list of 1 to 100,000 jobs"}),
        ({"jobs": [{"priority": 1e9}]}, {"jobs[0].priority": "not a whole number from -30,000 to 30,000"}),
        ({"jobs": "many"}, {"jobs": 'Expected a list of items but got type "str".'}),
        ({"defaults": []}, {"defaults": 'Expected a dictionary of items but got type "list".'}),
        ({"request_id": "x" * 65}, {"request_id": "Ensure this field has no more than 64 characters."}),
    ],
)
def test_a_submission_without_sense_is_refused_by_its_field(
    app: App, headers: dict[str, str], change: dict[str, Any], answer: dict[str, Any]
) -> None:
    assert errors_of(call("POST", API, headers, {**SUBMISSION, **change}, 400)) == answer
    assert not Batch.objects.exists()


def test_a_submission_may_be_longer_than_a_form(app: App, headers: dict[str, str]) -> None:
    body = json.dumps(SUBMISSION).ljust(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
    reply = Client().generic("POST", API, body, "application/json", headers=headers)
    assert (reply.status_code, json.loads(reply.content)["workunits"]) == (201, 2)


def test_a_body_that_is_too_long_or_no_json_is_refused(app: App, headers: dict[str, str]) -> None:
    reply = Client().post(API, "{", content_type="application/json", headers=headers)
    assert reply.status_code == 400
    too_long: dict[str, Any] = {"CONTENT_LENGTH": str(17 * 1024 * 1024)}
    reply = Client().generic("POST", API, "{}", "application/json", headers=headers, **too_long)
    assert reply.status_code == 413
    assert json.loads(reply.content)["detail"] == "The body may have at most 16777216 bytes."


def test_only_those_who_may_submit_get_in(app: App, bob: User, submitter: User, operator: User) -> None:
    assert "may not submit jobs" in call("POST", API, bearer(bob), SUBMISSION, 403)["detail"]
    assert "no scope write:jobs" in call("GET", API, bearer(submitter, "read:hosts"), None, 403)["detail"]
    assert call("GET", API, {}, None, 401)
    assert call("POST", API, bearer(operator), SUBMISSION, 201)


def test_each_sees_their_own_batches_and_operators_all(
    app: App, headers: dict[str, str], operator: User, bob: User
) -> None:
    theirs = submit(app, DEFAULTS, [{}], owner=bob, now=NOON)[0]
    for address in (f"{theirs.pk}/", f"{theirs.pk}/outputs/", f"{theirs.pk}/outputs/1/"):
        call("GET", API + address, headers, None, 404)
    call("POST", f"{API}{theirs.pk}/cancel/", headers, None, 404)
    assert call("GET", API, headers)["results"] == []
    assert [row["id"] for row in call("GET", API, bearer(operator))["results"]] == [theirs.pk]


def test_a_batch_is_cancelled(app: App, headers: dict[str, str]) -> None:
    made = call("POST", API, headers, SUBMISSION, 201)
    answer = call("POST", f"{API}{made['id']}/cancel/", headers)
    assert (answer["failed"], answer["open"], answer["cancelled_at"] is None) == (2, 0, False)
    assert set(Workunit.objects.values_list("error_mask", flat=True)) == {WorkunitError.CANCELLED}


@pytest.fixture
def finished(app: App, submitter: User, studio: Host) -> Batch:
    batch = submit(app, DEFAULTS, [{}] * 3, owner=submitter, now=NOON)[0]
    finish(batch, studio)
    assimilator.run(NOON)
    return batch


def test_outputs_are_listed_page_by_page_and_fetched(finished: Batch, headers: dict[str, str]) -> None:
    address, seen = f"{API}{finished.pk}/outputs/?limit=2", []
    while address:
        page = call("GET", address, headers)
        seen += page["results"]
        address = page["next"]
    assert [row["workunit"] for row in seen] == [f"alpine_{finished.pk}_{n}" for n in range(3)]
    assert {(row["name"], row["nbytes"]) for row in seen} == {("out", 3)}
    reply = Client().get(seen[0]["url"], headers=headers)
    assert b"".join(reply) == b"42\n"
    assert reply.headers["Cache-Control"] == "private, no-cache"
    known = Client().get(seen[0]["url"], headers={**headers, "If-None-Match": reply.headers["ETag"]})
    assert (known.status_code, known.content) == (304, b"")
    part = Client().get(seen[0]["url"], headers={**headers, "Range": "bytes=1-"})
    assert (part.status_code, b"".join(part)) == (206, b"2\n")


def test_a_batch_is_retired_when_it_is_finished(finished: Batch, headers: dict[str, str], submitter: User) -> None:
    open_ = submit(finished.app, DEFAULTS, [{}], owner=submitter, now=NOON)[0]
    assert "still has jobs to do" in call("POST", f"{API}{open_.pk}/retire/", headers, None, 409)["detail"]
    for _ in range(2):
        assert call("POST", f"{API}{finished.pk}/retire/", headers)["outputs"] == 0
    assert call("GET", f"{API}{finished.pk}/outputs/", headers)["results"] == []


# --- pages ------------------------------------------------------------------------------------------------------------


def test_pages_show_a_batch_and_its_outputs(client: Client, finished: Batch, submitter: User) -> None:
    client.force_login(submitter)
    listed = client.get("/project/batches/").content.decode()
    assert finished.name in listed and "finished" in listed
    page = client.get(f"/project/batches/{finished.pk}/").content.decode()
    assert "Cancel the batch" not in page
    output = finished.outputs.all()[0]
    address = f"/project/batches/{finished.pk}/outputs/{output.pk}/"
    assert address in page
    assert b"".join(client.get(address)) == b"42\n"


def test_a_batch_is_cancelled_on_its_page(client: Client, app: App, submitter: User) -> None:
    batch = submit(app, DEFAULTS, [{}], owner=submitter, now=NOON)[0]
    client.force_login(submitter)
    assert "Cancel the batch" in client.get(f"/project/batches/{batch.pk}/").content.decode()
    assert client.get(f"/project/batches/{batch.pk}/cancel/").status_code == 405
    page = client.post(f"/project/batches/{batch.pk}/cancel/", follow=True).content.decode()
    assert "1 workunit was cancelled" in page and "Cancel the batch" not in page


def test_for_others_the_pages_do_not_exist(client: Client, finished: Batch, bob: User) -> None:
    pages = ["/project/batches/", f"/project/batches/{finished.pk}/"]
    assert {client.get(page).status_code for page in pages} == {302}
    client.force_login(bob)
    assert {client.get(page).status_code for page in pages} == {404}
    bob.user_permissions.add(Permission.objects.get(codename="add_batch"))
    assert [client.get(page).status_code for page in pages] == [200, 404]
