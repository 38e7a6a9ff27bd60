"""Which role may do what in the admin: every address, every action, every role.

A new model of the admin needs a line in `MODELS` and a row in `tests.support.admin_rows`, a new address of its own a
line in `PAGES`: else a test here fails. The letters are those of `LETTERS`; superusers may do all of it, and volunteers
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib import admin
from django.db import transaction
from django.db.models import Model
from django.http import HttpResponseBase, HttpResponseForbidden
from django.test import Client, RequestFactory
from pytest_django import Settings

from accounting.models import UserProject
from portal.models import Change, Host, User
from portal.operators.roles import ROLES
from scheduler.programs import code_signing
from tests.support.admin_rows import admin_rows
from tests.support.roles import make_person
from tests.support.routes import routes
from tests.support.sessions import sign_in_lately

LETTERS: Final = {
    "M": "Account manager operator",
    "P": "Project administrator",
    "J": "Job submitter",
    "S": "Support",
    "R": "Read only",
}
STAFF: Final = "MPSR"


@dataclass(frozen=True)
class May:
    """Who may see the list, a row and its history; add; change; delete; and who has which action of the list."""

    view: str = ""
    add: str = ""
    change: str = ""
    delete: str = ""
    actions: Mapping[str, str] = field(default_factory=dict)


MODELS: Final = {
    "portal.user": May(actions={"allow_rights": ""}),
    "portal.account": May(view="S"),
    "portal.supportaction": May(view="S"),
    "portal.consentevent": May(view="P"),
    "portal.host": May(view="M"),
    "portal.clientkey": May(actions={"revoke": ""}),
    "portal.apitoken": May(actions={"revoke": ""}),
    "portal.hostlimitrequest": May(view="M", actions={"grant": "M", "decline": "M"}),
    "portal.jointoken": May(actions={"revoke": ""}),
    "portal.requestedwork": May(view="M"),
    "portal.operatingfigure": May(view="MPR"),
    "portal.sitetext": May(view="MR", add="M", change="M", delete="M"),
    "portal.change": May(view="MPR"),
    "portal.signedentry": May(view="MPR"),
    "portal.confirmationrequest": May(view="MP"),
    "portal.maintenancerun": May(view="MP", add="MP"),
    "accounting.project": May(view="MR", add="M", change="M"),
    "accounting.userproject": May(),
    "accounting.accountsettings": May(),
    "accounting.announcement": May(view="MR", add="M", change="M", delete="M"),
    "badges.badge": May(view="MR", add="M", change="M"),
    "win_back_mails.mailcampaign": May(view="MR", add="M", change="M"),
    "accounting.projectday": May(view="MR"),
    "accounting.projecttrouble": May(view="MR"),
    "accounting.projectstanding": May(view="MR"),
    "accounting.statisticsimport": May(view="MR", add="M", change="M", actions={"read_now": "M"}),
    "accounting.tasksource": May(view="MR"),
    "accounting.hostclient": May(view="M"),
    "accounting.settlement": May(view="M"),
    "accounting.note": May(view="M"),
    "credit.app": May(view="PR", add="P", change="P"),
    "credit.platform": May(view="PR", add="P", change="P"),
    "credit.appversion": May(view="PR", change="P"),
    "credit.hostappversion": May(view="P"),
    "credit.batch": May(view="P"),
    "laboratory.creditexperiment": May(view="P", add="P", change="P", delete="P"),
    "credit.confirmingpair": May(view="P"),
    "credit.preview": May(view="P"),
    "credit.statisticsexport": May(view="PR"),
    "central_factors.collectedexport": May(view="PR"),
    "credit.workunit": May(view="PR"),
    "credit.result": May(view="P"),
    "scheduler.appkeyword": May(view="PR", add="P", change="P", delete="P"),
    "remote_jobs.jobtemplate": May(view="P", add="P", change="P", delete="P"),
    "scheduler.submitter": May(view="P", add="P", change="P", delete="P"),
    "scheduler.workblock": May(view="P", add="P", change="P", delete="P"),
    "scripts.script": May(view="P", add="P", change="P", delete="P"),
    "scheduler.planclass": May(view="PR", add="P", change="P", delete="P"),
    "scheduler.retryentry": May(view="PR", actions={"try_now": "P"}),
    "scheduler.releasedraft": May(view="P", add="P", change="P"),
    "scheduler.storedfile": May(view="P", add="P"),
    "scheduler.trickle": May(view="P"),
    "scheduler.trickledown": May(view="P"),
    "scheduler.keychange": May(view="PR"),
}


@dataclass(frozen=True)
class Page:
    """An address that is not one of a model's usual ones: who is let in by GET, and who by POST."""

    route: str
    get: str = ""
    post: str = ""
    path: str = ""
    data: Mapping[str, str] = field(default_factory=dict)


SET_UP: Final = "admin/accounting/project/<int:pk>/set-up/"
DRAFT: Final = "admin/scheduler/releasedraft/<int:pk>/"
HELP: Final = "admin/portal/account/<int:pk>/help/<slug:what>/"
PAGES: Final = [
    Page("admin/", get=STAFF, post=STAFF),
    Page("admin/search/", get=STAFF, post=STAFF, path="admin/search/?s=user"),
    Page("admin/jsi18n/", get=STAFF),
    Page("admin/password_change/", get=STAFF, post=STAFF),
    Page("admin/password_change/done/", get=STAFF),
    Page(
        "admin/autocomplete/",
        path="admin/autocomplete/?app_label=accounting&model_name=userproject&field_name=user&term=a",
    ),
    # No model of ours has a page of its own that this would lead to.
    Page("admin/r/<path:content_type_id>/<path:object_id>/", path="admin/r/1/1/"),
    Page("admin/(?P<url>.*)$", path="admin/nothing/"),
    Page("admin/portal/user/<id>/password/", path="admin/portal/user/{user}/password/"),
    *(
        Page(HELP, post="S", path=f"admin/portal/account/{{account}}/help/{what}/", data={"reason": "They asked."})
        for what in ("remove-factors", "block", "unblock", "copy-data", "erase")
    ),
    Page("admin/portal/operatingfigure/panels/", get="MPR"),
    Page(
        "admin/portal/operatingfigure/history/<str:name>/",
        get="MPR",
        path="admin/portal/operatingfigure/history/am.rpcs/",
    ),
    Page("admin/portal/maintenancerun/start/<slug:name>/", post="MP", path="admin/portal/maintenancerun/start/check/"),
    # Without a proposal in one's session it leads back to the first page.
    Page("admin/portal/change/step/<str:key>/", get=STAFF, post=STAFF, path="admin/portal/change/step/none/"),
    Page("admin/portal/change/<int:pk>/undo/", post="M", path="admin/portal/change/{change}/undo/"),
    Page(
        "admin/credit/appversion/<path:object_id>/reset_statistics/",
        get="P",
        post="P",
        path="admin/credit/appversion/{appversion}/reset_statistics/",
    ),
    Page("admin/credit/preview/<int:pk>/result/", get="P", post="P", path="admin/credit/preview/{preview}/result/"),
    Page("admin/laboratory/creditexperiment/own-results/", get="PR"),
    Page("admin/central_factors/collectedexport/factors/", get="PR", post="P"),
    Page(
        "admin/laboratory/creditexperiment/<int:pk>/result.json",
        get="P",
        post="P",
        path="admin/laboratory/creditexperiment/{creditexperiment}/result.json",
    ),
    Page("admin/accounting/project/add-by-url/", get="M", post="M"),
    Page("admin/accounting/project/add-by-url/found/", get="M", post="M"),
    Page("admin/accounting/project/trouble/", get="MR"),
    Page("admin/accounting/project/by-url/", get="M", post="M"),
    Page("admin/accounting/project/troubles/", get="MR", post="MR"),
    Page(
        "admin/accounting/project/<path:object_id>/setup/",
        get="MR",
        post="MR",
        path="admin/accounting/project/{project}/setup/",
    ),
    Page("admin/accounting/project/<int:pk>/set-up/", get="MR", path="admin/accounting/project/{project}/set-up/"),
    *(
        Page(f"{SET_UP}{step}/", post="M", path=f"admin/accounting/project/{{project}}/set-up/{step}/")
        for step in ("ask", "sign", "look-up", "key", "try", "activate", "take-over", "seen")
    ),
    Page("admin/scheduler/retryentry/reserved/", get="PR"),
    Page("admin/scheduler/workblock/invalid-results/", get="P"),
    Page(
        "admin/scheduler/retryentry/reserved/<int:app>/<int:lane>/<str:action>/",
        post="P",
        path="admin/scheduler/retryentry/reserved/{app}/7/free/",
    ),
    Page(f"{DRAFT}manifest.json", get="P", post="P", path="admin/scheduler/releasedraft/{releasedraft}/manifest.json"),
    *(
        Page(f"{DRAFT}{step}/", post="P", path=f"admin/scheduler/releasedraft/{{releasedraft}}/{step}/")
        for step in ("files", "signatures", "sign", "discard")
    ),
    Page(
        f"{DRAFT}store/",
        post="P",
        path="admin/scheduler/releasedraft/{releasedraft}/store/",
        data={"action": "test"},
    ),
    Page(
        f"{DRAFT}files/<int:file_id>/remove/",
        post="P",
        path="admin/scheduler/releasedraft/{releasedraft}/files/1/remove/",
    ),
    Page(
        "admin/portal/confirmationrequest/<int:pk>/decide/",
        post="MP",
        path="admin/portal/confirmationrequest/{confirmationrequest}/decide/",
    ),
    Page("admin/portal/signedentry/export.jsonl", get="MPR"),
    # For superusers alone
    Page("admin/scheduler/keychange/new-key/"),
    Page("admin/scheduler/keychange/new-key/list.txt"),
    Page(
        "admin/scheduler/releasedraft/versions/<int:pk>/<str:action>/",
        post="P",
        path="admin/scheduler/releasedraft/versions/{appversion}/withdraw/",
    ),
]
APP_PAGES: Final = {"portal": "MPSR", "accounting": "MR", "credit": "PR", "scheduler": "PR"}
# For everybody: they lead to the site's own pages.
OPEN: Final = {"admin/login/", "admin/logout/"}

HISTORY: Final = (b"Alpha", b"alices sweep", b"wu_of_alice", b"1234567")
EMAIL: Final = b"alice@example.org"
ABOUT_ALICE: Final = (EMAIL, b"alices-own-computer", b"Alice the owner")
# What a role finds on none of its pages
HIDDEN: Final = {"M": (EMAIL,), "P": (EMAIL,), "J": (*ABOUT_ALICE, *HISTORY), "S": HISTORY, "R": ABOUT_ALICE}


@pytest.fixture
def rows(alice: User, tmp_path: Path, settings: Settings) -> dict[str, Model]:
    """One row of each model of the admin; those about a volunteer are about Alice. The site has keys of its own."""
    settings.CODE_SIGNING_KEY, settings.CODE_SIGNING_KEY_PUBLIC = tmp_path / "private", tmp_path / "public"
    code_signing.make_if_missing()
    User.objects.filter(pk=alice.pk).update(name="Alice the owner")
    return admin_rows(alice)


# --- the addresses ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """A request, and who is let in."""

    method: str
    path: str
    who: str
    data: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def asks_of_model(label: str, may: May, pk: object) -> Iterator[Ask]:
    base = f"/admin/{label.replace('.', '/')}/"
    yield Ask("GET", base, may.view)
    yield Ask("GET", f"{base}add/", may.add)
    yield Ask("POST", f"{base}add/", may.add)
    yield Ask("GET", f"{base}{pk}/change/", may.view)
    # Support's page takes the reason of a look by POST; the others have their own pages, which change nothing.
    is_page = label in ("portal.account", "portal.change", "credit.preview")
    yield Ask("POST", f"{base}{pk}/change/", may.view if is_page else may.change)
    yield Ask("GET", f"{base}{pk}/history/", may.view)
    yield Ask("GET", f"{base}{pk}/delete/", may.delete)
    yield Ask("POST", f"{base}{pk}/delete/", may.delete, {"post": "yes"})


def all_asks(rows: dict[str, Model]) -> Iterator[Ask]:
    for label, may in MODELS.items():
        yield from asks_of_model(label, may, rows[label].pk)
    ids = {label.partition(".")[2]: str(row.pk) for label, row in rows.items()}
    for page in PAGES:
        path = "/" + (page.path or page.route).format(**ids)
        yield Ask("GET", path, page.get)
        yield Ask("POST", path, page.post, page.data)
    for app, who in APP_PAGES.items():
        yield Ask("GET", f"/admin/{app}/", who)


def client_of(letter: str) -> Client:
    client = Client(raise_request_exception=False)
    sign_in_lately(client, make_person(LETTERS[letter]))
    return client


def ask(client: Client, each: Ask) -> HttpResponseBase:
    return client.get(each.path) if each.method == "GET" else client.post(each.path, dict(each.data))


def is_let_in(response: HttpResponseBase) -> bool:
    if response.status_code == 302:
        return not response.headers["Location"].startswith(("/account/login/", "/admin/login/"))
    # 422: a form with faults is shown again.
    return response.status_code in (200, 422)


@pytest.mark.parametrize("letter", LETTERS)
def test_each_role_gets_what_the_matrix_says(
    rows: dict[str, Model], letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three of four requests are refused, and the page that says so would take a quarter of the time.
    monkeypatch.setattr("portal.urls.handler403", lambda _request, exception: HttpResponseForbidden(), raising=False)
    client = client_of(letter)
    wrong, found = [], []
    for address in all_asks(rows):
        # Each request finds the rows as they were.
        with transaction.atomic():
            response = ask(client, address)
            body = b"".join(iter(response))
            transaction.set_rollback(True)
        if is_let_in(response) != (letter in address.who):
            wrong.append(f"{address}: {response.status_code}")
        found += [f"{address}: {secret.decode()}" for secret in HIDDEN[letter] if secret in body]
    assert (wrong, found) == ([], []), "let in or not; and what this role should not have seen"


@pytest.mark.parametrize("letter", "MPR")
def test_a_search_finds_out_no_address_that_the_role_does_not_see(rows: dict[str, Model], letter: str) -> None:
    client = client_of(letter)
    told = []
    for label in (label for label, may in MODELS.items() if letter in may.view):
        address = f"/admin/{label.replace('.', '/')}/"
        right, wrong = (client.get(address, {"q": term}) for term in ("alice@exam", "alice@else"))
        # Some lists are pages of their own, which search for nothing.
        lists = [response.context["cl"] for response in (right, wrong) if response.context and "cl" in response.context]
        if len({found.result_count for found in lists}) > 1:
            told.append(label)
        for person in ("owner", "user", "host__owner", "asked_by", "creator"):
            answer = client.get(address, {f"{person}__email__startswith": "alice@exam"})
            if b"alices" in b"".join(iter(answer)):
                told.append(f"{label}, {person}")
    assert told == []


@pytest.mark.parametrize("letter", "MPR")
def test_a_change_of_a_volunteers_own_row_is_for_who_sees_the_row(rows: dict[str, Model], letter: str) -> None:
    superuser = User.objects.create_superuser("super@example.org", "a secret")
    root = Client()
    sign_in_lately(root, superuser)
    row = UserProject.objects.get(pk=rows["accounting.userproject"].pk)
    form = {"user": row.user_id, "project": row.project_id, "is_chosen": "on", "resource_share": "33"}
    root.post(f"/admin/accounting/userproject/{row.pk}/change/", form)
    change = Change.objects.get(content_type__model="userproject")
    address = "/admin/portal/change/"
    told = f"person {row.user_id} at Alpha"
    assert told in root.get(address).content.decode()
    assert root.get(f"{address}{change.pk}/change/").status_code == 200
    client = client_of(letter)
    assert "project: Alpha" in client.get(address).content.decode()
    assert told not in client.get(address).content.decode()
    assert client.get(f"{address}{change.pk}/change/").status_code == 403


def test_a_search_finds_out_no_token_bit_by_bit(rows: dict[str, Model]) -> None:
    Host.objects.update(token="d" * 32)
    client = client_of("M")
    counts = [client.get("/admin/accounting/hostclient/", {"q": "d" * n}).context["cl"].result_count for n in (4, 32)]
    assert counts == [0, 1]


@pytest.mark.parametrize("letter", LETTERS)
def test_each_role_has_the_actions_that_the_matrix_says(db: None, letter: str) -> None:
    request = RequestFactory().get("/admin/")
    request.user = make_person(LETTERS[letter])
    for label, model_admin in registered().items():
        may = MODELS[label]
        expected = {name for name, who in may.actions.items() if letter in who}
        # Plan classes are deleted one by one.
        if letter in may.delete and label != "scheduler.planclass":
            expected.add("delete_selected")
        if letter in may.view:
            assert set(model_admin.get_actions(request)) == expected, label


def registered() -> dict[str, Any]:
    return {model._meta.label_lower: model_admin for model, model_admin in admin.site._registry.items()}


def test_every_model_of_the_admin_has_a_line() -> None:
    assert set(registered()) == set(MODELS), "add lines to MODELS, or remove those of models that are gone"
    actions = {label: {name for _, name, _ in each._get_base_actions()} for label, each in registered().items()}
    unknown = {label: names - {"delete_selected"} - set(MODELS[label].actions) for label, names in actions.items()}
    assert not any(unknown.values()), f"add lines for these actions: {unknown}"


def test_every_address_of_the_admin_has_a_line() -> None:
    there = {route for route, _ in routes() if route.startswith("admin/")}
    usual = {
        f"admin/{label.replace('.', '/')}/{what}"
        for label in MODELS
        for what in (
            "",
            "add/",
            "<path:object_id>/",
            "<path:object_id>/change/",
            "<path:object_id>/history/",
            "<path:object_id>/delete/",
        )
    }
    app_list = {route for route in there if "(?P<app_label>" in route}
    assert all(app in next(iter(app_list)) for app in APP_PAGES)
    assert there - usual - app_list - OPEN - {page.route for page in PAGES} == set(), "add lines to PAGES"
    assert (usual | {page.route for page in PAGES}) - there == set(), "lines of addresses that are gone"


def test_the_letters_are_the_roles() -> None:
    assert list(LETTERS.values()) == [role.name for role in ROLES]
