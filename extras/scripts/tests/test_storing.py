"""Storing scripts, in the admin and by the REST API: permissions, refusals, confirmation by another operator."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from credit import functions
from credit.functions import FunctionKind
from credit.models import App, Comparison
from extras.scripts.models import Script
from extras.scripts.tests.conftest import BY_VALUE, Make
from portal.audit import two_persons
from portal.audit.two_persons import StepRefused
from portal.models import ApiToken, Change, ConfirmationRequest, User
from portal.people.api_tokens import issue_token
from tests.support.admin_forms import post_form
from tests.support.rest_api import errors_of
from tests.support.roles import make_person
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db

ADMIN = "/admin/scripts/script/"
SHELL = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def administrator(db: None) -> User:
    return make_person("Project administrator")


def browser_of(person: User) -> Client:
    client = Client()
    sign_in_lately(client, person)
    return client


def form(**fields: Any) -> dict[str, Any]:
    values = {"name": "energy", "kind": "compare", "protocol": "lines", "source": BY_VALUE}
    return {**values, "max_secs": 10, "max_memory_mib": 256, **fields}


def added(person: User, **fields: Any) -> str:
    return browser_of(person).post(f"{ADMIN}add/", form(**fields), follow=True).content.decode()


def token_of(person: User, scope: ApiToken.Scope = ApiToken.Scope.SCRIPTS) -> dict[str, str]:
    text = issue_token(person, name="t", scopes=[scope], lifetime=None)
    return {"Authorization": f"Bearer {text}"}


def put(person: User, name: str = "energy", **fields: Any) -> Any:
    body = {"kind": "compare", "program": BY_VALUE, **fields}
    return Client().put(f"/api/v1/scripts/{name}/", body, "application/json", headers=token_of(person))


def use(person: User, app: str, name: str = "energy") -> Any:
    path = f"/api/v1/scripts/{name}/use/"
    return Client().post(path, {"app": app}, "application/json", headers=token_of(person))


def test_an_administrator_adds_one_and_an_app_can_name_it_at_once(administrator: User, app: App) -> None:
    # A script that was never called has no last failure.
    assert "rests_until" not in browser_of(administrator).get(f"{ADMIN}add/").content.decode()
    added(administrator)
    assert functions.registered(FunctionKind.COMPARISON) == ["script:energy"]
    assert functions.registered(FunctionKind.ASSIMILATION) == []
    answer = post_form(browser_of(administrator), app, comparison="custom", comparison_function="script:energy")
    assert answer.status_code == 302
    app.refresh_from_db()
    assert (app.comparison, app.comparison_function) == (Comparison.CUSTOM, "script:energy")
    # It cannot be deleted while the app names it; the change was recorded with its author.
    script = Script.objects.get()
    assert browser_of(administrator).post(f"{ADMIN}{script.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Change.objects.get_for_object(script).get().actor == administrator


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"source": "print(1)"}, "Begin with #!"),
        ({"source": ""}, "Begin with #!"),
        ({"words": "files"}, "Only for scripts that are asked by words."),
        ({"protocol": "words", "words": "files batch_id"}, "There is no such word."),
        ({"protocol": "words", "check_source": "x"}, "Begin with #!"),
        ({"protocol": "words", "kind": "assimilate", "check_source": SHELL}, "Only for scripts that compare outputs."),
        ({"max_secs": 121}, "less than or equal to 120"),
        ({"max_memory_mib": 15}, "greater than or equal to 16"),
        ({"name": "../x"}, "Use a–z"),
    ],
)
def test_what_could_not_be_run_is_refused_with_the_reason(
    administrator: User, fields: dict[str, Any], said: str
) -> None:
    assert said in added(administrator, **fields)
    assert not Script.objects.exists()


def test_the_api_stores_one_and_has_an_app_use_it(administrator: User, app: App) -> None:
    answer = put(administrator, reason="first")
    assert (answer.status_code, answer.json()["function"]) == (201, "script:energy")
    assert put(administrator, program=SHELL).status_code == 200
    assert use(administrator, "alpine").status_code == 200
    app.refresh_from_db()
    assert (app.comparison, app.comparison_function) == (Comparison.CUSTOM, "script:energy")
    changes = Change.objects.get_for_object(Script.objects.get()).order_by("pk")
    assert [(change.actor, change.reason) for change in changes] == [(administrator, "first"), (administrator, "")]
    listed = Client().get("/api/v1/scripts/", headers=token_of(administrator)).json()["results"]
    assert [script["program"] for script in listed] == [SHELL]
    refused = put(administrator, kind="assimilate").json()
    assert errors_of(refused) == {"kind": "It compares outputs. Choose another name."}
    assert use(administrator, "none").status_code == 400
    assert errors_of(put(administrator, "Energy").json()).keys() == {"name"}


@pytest.mark.parametrize("name", ["no%20name", "a%00", "a%23b", "a%3Fb", "a.b"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_what_can_be_no_name_is_no_address_and_leads_to_none(administrator: User, name: str, slash: str) -> None:
    """Otherwise, without its slash, a#b would lead to the script a."""
    answer = Client().generic("PUT", f"/api/v1/scripts/{name}{slash}", "{}", headers=token_of(administrator))
    assert answer.status_code == 404


def test_neither_volunteers_nor_tokens_for_something_else_may(administrator: User, alice: User, app: App) -> None:
    alice.user_permissions.clear()
    assert put(alice).status_code == 403
    alice.groups.add(Group.objects.get(name="Job submitter"))
    assert (put(alice).status_code, use(alice, "alpine").status_code) == (403, 403)
    headers = token_of(administrator, ApiToken.Scope.JOBS)
    assert Client().get("/api/v1/scripts/", headers=headers).status_code == 403
    assert not Script.objects.exists()


def second() -> User:
    return User.objects.create_superuser("second@example.org", "a long password", name="Second")


def confirm(person: User) -> None:
    two_persons.confirm(ConfirmationRequest.objects.latest("pk").pk, person, timezone.now())


def test_where_two_persons_decide_another_one_confirms_each_program(
    administrator: User, app: App, settings: Settings
) -> None:
    settings.TWO_PERSONS = True
    assert put(administrator).status_code == 202
    assert functions.registered(FunctionKind.COMPARISON) == []
    assert use(administrator, "alpine").status_code == 400
    with pytest.raises(StepRefused):
        confirm(administrator)
    row = ConfirmationRequest.objects.get()
    other = second()
    page = browser_of(other).get(f"/admin/portal/confirmationrequest/{row.pk}/change/").content.decode()
    assert "abs(value(asked" in page
    assert page.index("compares outputs") < page.index("lines of JSON") < page.index("abs(value(asked")
    confirm(other)
    assert use(administrator, "alpine").status_code == 200
    # In the admin, a changed limit is stored, and a changed program waits.
    script = Script.objects.get()
    answer = post_form(browser_of(administrator), script, source=SHELL, max_secs=20)
    assert answer.status_code == 302
    script.refresh_from_db()
    assert (script.source, script.max_secs) == (BY_VALUE, 20)
    confirm(other)
    script.refresh_from_db()
    assert script.source == SHELL.strip()


def test_what_was_changed_since_it_was_asked_for_is_not_confirmed(
    administrator: User, make_script: Make, settings: Settings
) -> None:
    script = make_script(name="energy")
    settings.TWO_PERSONS = True
    assert put(administrator, program=SHELL).status_code == 202
    Script.objects.filter(pk=script.pk).update(words="files")
    with pytest.raises(StepRefused, match="was changed since"):
        confirm(second())


def test_a_session_is_not_enough_for_the_api(administrator: User) -> None:
    answer = browser_of(administrator).put("/api/v1/scripts/energy/", {}, "application/json")
    assert answer.status_code == 401
    assert not Script.objects.exists()
