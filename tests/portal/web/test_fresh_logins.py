"""Every address that changes something needs a login of the last few minutes, or has a reason here why it needs none.

A new address needs a declaration (`portal.people.fresh_login`) or a line in `NONE_NEEDED`, else a test here fails. A
name in capitals is a class of the admin, with all usual addresses of its model.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.core import mail
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from extras.alerts.models import AlertChannel
from portal.models import LoginToken, User
from portal.people.fresh_login import declaration_of
from portal.people.security_events import NOWHERE
from portal.people.staff import allow_rights
from tests.support.admin_forms import post_form
from tests.support.routes import routes
from tests.support.sessions import confirm_address, sign_in_lately

NEEDED: Final = {
    "account/alerts/<int:pk>/secret/",
    "account/alerts/<slug:path>/",
    "account/data/copy/",
    "account/password/set/",
    "account/tokens/",
    "account/tokens/<int:pk>/replace/",
    "project/batches/keys/",
    "admin/portal/confirmationrequest/<int:pk>/decide/",
    "admin/portal/account/<int:pk>/help/<slug:what>/",
    "admin/portal/user/<id>/password/",
    "admin/scheduler/keychange/new-key/",
    "admin/scheduler/releasedraft/<int:pk>/sign/",
    "admin/scheduler/releasedraft/<int:pk>/store/",
    "admin/scheduler/releasedraft/versions/<int:pk>/<str:action>/",
    "computers/joining/",
    "account/login-token/",
    "projects/<int:pk>/account/",
    "USER",
    "SCRIPT",
}
NONE_NEEDED: Final = {
    "It is how one signs in or out, or takes an account back.": """
        account/login/ account/logout/ account/signup/ account/reauthenticate/ account/password/reset/
        account/^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$ account/confirm-email/
        account/^confirm-email/(?P<key>[-:\\w]+)/$ account/login/code/confirm/ account/2fa/authenticate/
        account/2fa/reauthenticate/ account/2fa/webauthn/reauthenticate/ account/2fa/webauthn/login/ admin/login/
        admin/logout/""",
    "Its form asks for the password.": """
        account/email/ account/user-name/ account/password/change/ account/delete/ admin/password_change/""",
    "django-allauth asks for the password itself.": """
        account/2fa/totp/activate/ account/2fa/totp/deactivate/ account/2fa/recovery-codes/generate/
        account/2fa/webauthn/add/ account/2fa/webauthn/keys/<int:pk>/remove/
        account/2fa/webauthn/keys/<int:pk>/edit/""",
    "It takes access away, or channels of which a mail tells, and gives none.": """
        account/keys/<int:pk>/revoke/ account/keys/revoke/ account/tokens/<int:pk>/revoke/ account/sessions/
        project/batches/keys/<int:pk>/revoke/
        account/alerts/<int:pk>/remove/ computers/joining/<int:pk>/revoke/""",
    "It is about alerts: it leads none elsewhere.": """
        account/alerts/<int:pk>/choose/ account/alerts/<int:pk>/test/ account/alerts/<int:pk>/resume/""",
    "It needs the keys of the browser that it moves, and no login.": "account/alerts/browser/moved/",
    "It changes what one's pages, mails and computers do: its owner sees that and changes it back.": """
        account/profile/ account/preferences/ account/preferences/shown/ account/email-preferences/
        account/signature-image/ projects/ projects/keywords/ computers/change/ computers/<int:pk>/settings/
        computers/<int:pk>/projects/ computers/<int:pk>/retire/ computers/<int:pk>/unretire/ computers/<int:pk>/split/
        computers/<int:pk>/merge/ history/files/make/ history/certificates/new/ history/certificates/<int:pk>/change/
        computers/joining/request/
        project/statistics/ project/teams/new/ project/teams/<int:pk>/change/ project/top/choice/ project/testing/
        project/preferences/""",
    "It is about one's own experiments.": """
        laboratory/new/ laboratory/<int:pk>/share/ laboratory/<int:pk>/delete/ emulator/new/json/
        emulator/new/blank/ emulator/<int:pk>/edit/
        emulator/<str:key>/runs/<int:number>/decisions/<int:decision>/ emulator/new/form/ emulator/new/files/
        emulator/new/example/<slug:key>/ emulator/new/computer/<int:pk>/ emulator/<int:pk>/
        emulator/<int:pk>/estimate/
        emulator/<int:pk>/change/ emulator/<int:pk>/cancel/ emulator/<int:pk>/share/ emulator/<int:pk>/delete/
        emulator/shared/<str:key>/fork/""",
    "It submits and ends jobs of programs that were released, which their owner follows.": """
        project/batches/containers/ project/batches/images/<int:pk>/ project/batches/images/<int:pk>/remove/
        project/batches/new/ project/batches/drafts/<int:pk>/submit/ project/batches/drafts/<int:pk>/discard/
        project/batches/<int:pk>/jobs/cancel/ project/batches/<int:pk>/retry/ project/batches/<int:pk>/retire/
        project/batches/<int:pk>/cancel/ admin/scheduler/retryentry/reserved/<int:app>/<int:lane>/<str:action>/""",
    "Programs call it, with a token or a key.": """
        ^project/+submit_rpc_handler\\.php$ ^project/+job_file\\.php$ ^project/+get_output2\\.php$
        server_status.php project/server_status.php
        api/v1/experiments/ api/v1/experiments/<int:pk>/ api/v1/batches/ api/v1/batches/<int:pk>/cancel/
        api/v1/batches/<int:pk>/messages/
        api/v1/batches/<int:pk>/retire/ api/v1/files/<str:name>/ api/v1/scripts/<slug:name>/
        api/v1/scripts/<slug:name>/use/ api/v1/blocks/ api/v1/blocks/<int:pk>/ api/v1/reserved-jobs/
        api/v1/app-versions/<int:pk>/steps/ api/v1/app-version-drafts/ api/v1/app-version-drafts/<int:pk>/
        api/v1/app-version-drafts/<int:pk>/release/ api/v1/app-version-drafts/<int:pk>/files/<str:name>/""",
    "Anybody may, without a login.": """
        language/ look-around/ look-around/leave/ mails/end/<str:token>/ healthz readyz metrics notices.rss
        notices.php
        notices/<int:pk>-<slug:mark>.rss ^api(?:/|$)""",
    "An operator's change of settings: recorded with its author, shown to all operators, and undone by one click.": """
        admin/portal/change/step/<str:key>/ admin/portal/change/<int:pk>/undo/
        admin/accounting/project/add-by-url/ admin/accounting/project/add-by-url/found/
        admin/accounting/project/<int:pk>/set-up/ask/ admin/accounting/project/<int:pk>/set-up/sign/
        admin/accounting/project/<int:pk>/set-up/look-up/ admin/accounting/project/<int:pk>/set-up/key/
        admin/accounting/project/<int:pk>/set-up/try/ admin/accounting/project/<int:pk>/set-up/activate/
        admin/accounting/project/<int:pk>/set-up/take-over/ admin/accounting/project/<int:pk>/set-up/seen/
        admin/credit/appversion/<path:object_id>/reset_statistics/ admin/credit/preview/<int:pk>/result/
        admin/central_factors/collectedexport/factors/ admin/accounting/project/by-url/
        admin/accounting/project/<path:object_id>/setup/ admin/accounting/project/troubles/
        SITETEXT PROJECT USERPROJECT ACCOUNTSETTINGS ANNOUNCEMENT BADGE MAILCAMPAIGN STATISTICSIMPORT APP PLATFORM
        APPVERSION PLANCLASS APPKEYWORD JOBTEMPLATE SUBMITTER
        WORKBLOCK""",
    "A draft: nothing of it counts before it is stored.": """
        admin/scheduler/releasedraft/<int:pk>/files/ admin/scheduler/releasedraft/<int:pk>/files/<int:file_id>/remove/
        admin/scheduler/releasedraft/<int:pk>/manifest.json admin/scheduler/releasedraft/<int:pk>/signatures/
        admin/scheduler/releasedraft/<int:pk>/discard/ RELEASEDRAFT""",
    "It starts work of the site that is safe to repeat.": """
        admin/portal/maintenancerun/start/<slug:name>/ MAINTENANCERUN RETRYENTRY CREDITEXPERIMENT PREVIEW""",
    "It shows things; what it can do is to revoke them, to retire them or to note why one looks.": """
        CHANGE HOST CLIENTKEY APITOKEN JOINTOKEN HOSTLIMITREQUEST SIGNEDENTRY CONFIRMATIONREQUEST CONSENTEVENT
        ACCOUNT SUPPORTACTION REQUESTEDWORK OPERATINGFIGURE PROJECTDAY CONFIRMINGPAIR
        PROJECTTROUBLE PROJECTSTANDING SETTLEMENT TASKSOURCE HOSTCLIENT NOTE HOSTAPPVERSION BATCH WORKUNIT RESULT
        COLLECTEDEXPORT STATISTICSEXPORT STOREDFILE TRICKLE TRICKLEDOWN KEYCHANGE admin/ admin/search/
        admin/autocomplete/
        admin/jsi18n/ admin/password_change/done/ admin/r/<path:content_type_id>/<path:object_id>/ admin/(?P<url>.*)$
        admin/^(?P<app_label>portal|accounting|credit|scheduler|badges|win_back_mails|laboratory|central_factors|remote_jobs|scripts)/$
        admin/laboratory/creditexperiment/own-results/ admin/laboratory/creditexperiment/<int:pk>/result.json""",
}

View = Callable[..., Any]
USUAL_VIEWS: Final = ("changelist_view", "add_view", "change_view", "delete_view", "history_view", "view")


def takes_unsafe_methods(view: View | None) -> bool:
    """Whether it may: views say which methods they take in Django's decorators or by the methods of their class."""
    while view is not None:
        of_class = getattr(view, "view_class", None) or getattr(view, "cls", None)
        if of_class is not None:
            return any(hasattr(of_class, method) for method in ("post", "put", "patch", "delete"))
        for cell in getattr(view, "__closure__", None) or ():
            methods = cell.cell_contents
            if isinstance(methods, list | tuple) and methods and all(re.fullmatch("[A-Z]+", str(m)) for m in methods):
                return not {*methods} <= {"GET", "HEAD", "OPTIONS"}
        view = getattr(view, "__wrapped__", None)
    return True


def changing() -> Iterator[tuple[str, View]]:
    """All addresses that may change something, by route, and those of a model in the admin by the model's name."""
    for route, pattern in routes():
        view = pattern.callback
        if f"/{route}" not in settings.CLIENT_PATHS and takes_unsafe_methods(view):
            model_admin = getattr(view, "model_admin", None)
            if model_admin is not None and getattr(view, "__name__", "") in USUAL_VIEWS:
                route = model_admin.opts.model_name.upper()
            yield route, view


def test_every_address_that_changes_something_declares_whether_it_needs_a_fresh_login() -> None:
    reasons = {line: reason for reason, lines in NONE_NEEDED.items() for line in lines.split()}
    views = dict(changing())
    assert {line for line, view in changing() if declaration_of(view)} == NEEDED
    assert views.keys() - NEEDED - reasons.keys() == set(), "neither declared nor here with a reason"
    assert reasons.keys() - views.keys() == set(), "reasons of addresses that are gone"
    assert reasons.keys() & NEEDED == set()


def test_a_view_that_says_nothing_is_noticed() -> None:
    def bare(request: object) -> None: ...

    assert takes_unsafe_methods(bare) and declaration_of(bare) is None


# --- an operator's browser that was left open -------------------------------------------------------------


@pytest.fixture
def left_open(client: Client, operator: User) -> Client:
    """An operator's browser that signed in long ago."""
    client.force_login(operator)
    return client


PASSWORD_PAGE: Final = "/account/reauthenticate/?next="


def asks_for_password(browser: Client, path: str, data: dict[str, Any]) -> bool:
    answer = browser.post(path, data)
    return answer.status_code == 302 and answer.headers["Location"].startswith(PASSWORD_PAGE)


def test_it_changes_neither_passwords_nor_rights(left_open: Client, alice: User) -> None:
    person = f"/admin/portal/user/{alice.pk}/"
    assert asks_for_password(left_open, f"{person}password/", {"password1": "x", "password2": "x"})
    assert asks_for_password(left_open, f"{person}change/", {"email": alice.email, "is_superuser": "on"})
    assert asks_for_password(left_open, "/admin/portal/user/", {"action": "allow_rights", "_selected_action": alice.pk})
    # The pages with the forms ask, too, so that nobody fills them in for nothing.
    for page in (f"{person}password/", f"{person}change/"):
        assert left_open.get(page).headers["Location"].startswith(PASSWORD_PAGE)
    alice.refresh_from_db()
    assert alice.check_password("alice's secret") and not alice.is_superuser
    # A password that was entered is not in the session meanwhile.
    assert "account_reauthentication_state" not in left_open.session


def test_it_makes_no_login_token(
    client: Client,
    alice: User,
    settings: Settings,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    settings.BOINC_LIST_ID = 123
    client.force_login(alice)
    assert asks_for_password(client, "/account/login-token/", {})
    form = {"password": "alice's secret", "next": "/account/login-token/"}
    with django_capture_on_commit_callbacks(execute=True):
        assert "__123_" in client.post(PASSWORD_PAGE, form).content.decode()
    [sent] = mail.outbox
    assert sent.to == [alice.email] and "A login token for a BOINC client was created." in sent.body


def test_a_form_that_was_given_up_is_not_sent_by_a_later_password(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(alice)
    page = "/account/login-token/"
    later = time.time() + 6 * 60
    assert asks_for_password(client, page, {})
    monkeypatch.setattr(time, "time", lambda: later)
    client.post(PASSWORD_PAGE, {"password": "alice's secret", "next": page})
    assert not LoginToken.objects.exists()


def test_another_question_for_the_password_forgets_the_form_before(client: Client, alice: User) -> None:
    client.force_login(alice)
    page = "/account/login-token/"
    assert asks_for_password(client, page, {})
    assert asks_for_password(client, "/account/password/set/", {})
    client.post(PASSWORD_PAGE, {"password": "alice's secret", "next": page})
    assert not LoginToken.objects.exists()


# --- what mails tell ----------------------------------------------------------------------------------------


def test_a_password_that_an_operator_sets_is_told_of(
    desk: Client, alice: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    words = "a long one for alice"
    with django_capture_on_commit_callbacks(execute=True):
        desk.post(f"/admin/portal/user/{alice.pk}/password/", {"password1": words, "password2": words})
    [sent] = mail.outbox
    assert sent.to == [alice.email] and "The password was set." in sent.body and "An operator" in sent.body
    assert words not in sent.body


def test_rights_that_change_are_told_of_to_their_owner_and_to_all_superusers(
    desk: Client, alice: User, operator: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    role = Group.objects.get(name="Job submitter")
    other = User.objects.create_superuser("other@example.org", "a secret")
    with django_capture_on_commit_callbacks(execute=True):
        post_form(desk, alice, is_superuser="on", groups=[role.pk])
    to_alice = [sent for sent in mail.outbox if sent.to == [alice.email]]
    to_others = {sent.to[0]: sent for sent in mail.outbox if sent.to != [alice.email]}
    assert len(to_alice) == 1 and "superuser" in to_alice[0].body.lower() and "roles" in to_alice[0].body.lower()
    assert to_others.keys() == {operator.email, other.email}
    assert alice.email in to_others[other.email].body


def test_an_address_that_an_operator_changes_is_told_of_at_both(
    desk: Client, alice: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        post_form(desk, alice, email="new@example.org")
    assert sorted(sent.to[0] for sent in mail.outbox) == ["alice@example.org", "new@example.org"]
    for sent in mail.outbox:
        assert "from alice@example.org to new@example.org" in sent.body


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_an_address_that_its_owner_changes_is_told_of_at_both(
    client: Client,
    alice: User,
    is_confirmed: bool,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    if is_confirmed:
        confirm_address(alice)
    sign_in_lately(client, alice)
    new = {"email": "new@example.org", "password": "alice's secret", "action_add": ""}
    client.post("/account/email/", new)
    link = re.search(r"/account/confirm-email/\S+", str(mail.outbox[-1].body))
    assert link and mail.outbox[-1].to == ["new@example.org"]
    mail.outbox.clear()
    with django_capture_on_commit_callbacks(execute=True):
        client.post(link[0])
    alice.refresh_from_db()
    assert alice.email == "new@example.org"
    assert sorted(sent.to[0] for sent in mail.outbox) == ["alice@example.org", "new@example.org"]


def test_rights_that_are_allowed_again_are_told_of(
    alice: User, operator: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        allow_rights(alice, NOWHERE)
    assert {sent.to[0] for sent in mail.outbox} == {alice.email, operator.email}


def test_a_name_alone_is_no_change_of_rights(
    desk: Client, alice: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        post_form(desk, alice, name="Alicia")
    assert mail.outbox == []


def test_a_copy_of_all_data_is_told_of(
    client: Client, alice: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    sign_in_lately(client, alice)
    with django_capture_on_commit_callbacks(execute=True):
        client.post("/account/data/copy/")
        client.post("/account/data/copy/")
    [sent] = mail.outbox
    assert sent.to == [alice.email] and "A copy of everything that is stored about you was requested." in sent.body


def test_a_channel_of_alerts_that_is_removed_is_told_of_by_mail(
    client: Client, alice: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    channel = AlertChannel.objects.create(user=alice, kind="webhook", name="my hook", host="h", destination=b"")
    sign_in_lately(client, alice)
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(f"/account/alerts/{channel.pk}/remove/").status_code == 302
        assert client.post(f"/account/alerts/{channel.pk}/remove/").status_code == 404
    [sent] = mail.outbox
    assert sent.to == [alice.email] and "A channel for alerts was removed: my hook." in sent.body
