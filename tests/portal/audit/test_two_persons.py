"""Steps that one operator asks for and another one confirms: what waits, who confirms, and what is refused."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounting.models import Project
from accounting.projects import signing_key
from portal.audit import two_persons
from portal.audit.carry_out import carry_out
from portal.audit.proposals import Proposal
from portal.models import ConfirmationRequest, User
from portal.ops import checks
from scheduler.engine.release_states import ReleaseState
from scheduler.models import KeyChange, StoredFile
from scheduler.programs import code_signing, key_change
from tests.support.accounting_factories import make_project
from tests.support.admin_forms import post_form
from tests.support.releases import BASE, add_file, do, prepared, signed_version, state, store
from tests.support.roles import give_role, make_person
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db
BETA = "https://beta.example.org/"


@pytest.fixture(autouse=True)
def switched_on(settings: Settings, tmp_path: Path) -> None:
    settings.TWO_PERSONS = True
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.CODE_SIGNING_KEY, settings.CODE_SIGNING_KEY_PUBLIC = tmp_path / "code_private", tmp_path / "code_public"
    settings.AM_SIGNING_KEY, settings.AM_SIGNING_KEY_PUBLIC = tmp_path / "am_private", tmp_path / "am_public"
    code_signing.make_if_missing()
    signing_key.make_if_missing()


def browser_of(user: User) -> Client:
    client = Client()
    sign_in_lately(client, user)
    return client


def superuser(name: str) -> User:
    return User.objects.create_superuser(f"{name}@example.org", "a long password", name=name)


def waiting() -> ConfirmationRequest:
    return ConfirmationRequest.objects.get(is_confirmed=None)


def decide(person: User, what: str = "confirm") -> str:
    """What is said then."""
    address = reverse("admin:confirmation_decide", args=[ConfirmationRequest.objects.latest("pk").pk])
    return browser_of(person).post(address, {what: "1"}, follow=True).content.decode()


@pytest.fixture
def project() -> Project:
    return make_project("Alpha", "42_key", master_url="https://alpha.example.org/")


@pytest.fixture
def asked(project: Project) -> User:
    """Who asked for another address of the project."""
    person = make_person("Account manager operator")
    page = post_form(browser_of(person), project, master_url=BETA, summary="Of the sky")
    assert page.status_code == 302
    return person


def another() -> User:
    person = User.objects.create_user("another@example.org", "a long password", name="Another")
    give_role(person, "Account manager operator")
    return person


def test_an_address_of_another_server_waits_and_the_rest_of_the_form_does_not(project: Project, asked: User) -> None:
    project.refresh_from_db()
    assert (project.master_url, project.summary) == ("https://alpha.example.org/", "Of the sky")
    assert project.shared_account_key
    page = browser_of(asked).get(reverse("admin:portal_confirmationrequest_change", args=[waiting().pk]))
    assert "You asked for this yourself" in page.content.decode() and BETA in page.content.decode()


def test_another_operator_confirms_it_and_then_it_is_done(project: Project, asked: User) -> None:
    assert "Confirmed and done." in decide(another())
    project.refresh_from_db()
    assert (project.master_url, project.shared_account_key) == (BETA, None)
    row = ConfirmationRequest.objects.get()
    assert (row.asked_by, row.decided_by and row.decided_by.name, row.is_confirmed) == (asked, "Another", True)


def test_nobody_confirms_their_own_step_not_even_in_the_database(project: Project, asked: User) -> None:
    assert "You asked for this yourself" in decide(asked)
    assert waiting()
    with pytest.raises(IntegrityError, match="confirmationrequest_two"), transaction.atomic():
        ConfirmationRequest.objects.update(is_confirmed=True, decided_by=asked)
    assert "Refused: nothing was changed." in decide(asked, "refuse")
    assert "This has already been decided." in decide(another())
    project.refresh_from_db()
    assert project.master_url == "https://alpha.example.org/"


def test_who_has_not_the_role_does_not_confirm_and_sees_it_refused(asked: User) -> None:
    other = make_person("Project administrator")
    assert "Your role does not cover this step." in decide(other)
    assert "Your role does not cover this step." in decide(other, "refuse")
    assert waiting()


def test_what_was_asked_for_by_somebody_who_lost_the_role_or_long_ago_is_not_done(asked: User) -> None:
    asked.groups.clear()
    person = another()
    assert "may no longer do it" in decide(person)
    give_role(asked, "Account manager operator")
    ConfirmationRequest.objects.update(asked_at=waiting().asked_at - dt.timedelta(days=7))
    assert "has expired" in decide(person)


def test_an_address_that_was_changed_meanwhile_is_not_overwritten(project: Project, asked: User) -> None:
    Project.objects.filter(pk=project.pk).update(master_url="https://gamma.example.org/")
    assert "changed meanwhile" in decide(another())
    assert waiting()


def test_asked_again_it_is_one_request_and_there_is_a_limit(asked: User) -> None:
    now = waiting().asked_at
    assert two_persons.ask("project_address", "again", waiting().payload, asked, now) == waiting()
    for number in range(two_persons.MAX_OPEN - 1):
        two_persons.ask("project_address", str(number), {"project": number}, asked, now)
    with pytest.raises(two_persons.StepRefused, match="100 steps are already waiting"):
        two_persons.ask("project_address", "one more", {"project": -1}, asked, now)


def test_an_undo_does_not_go_round_it(project: Project, asked: User) -> None:
    proposal = Proposal(Project._meta.label, project.pk, {"master_url": [project.master_url, BETA]})
    with pytest.raises(ValidationError, match="Two persons are needed"):
        carry_out(proposal, asked, "to be quick")


def test_more_rights_wait_for_another_superuser_and_fewer_do_not(alice: User) -> None:
    first, second = superuser("first"), superuser("second")
    give_role(alice, "Support")
    group = Group.objects.get(name="Account manager operator")
    assert post_form(browser_of(first), alice, groups=[str(group.pk)], is_superuser="on").status_code == 302
    alice.refresh_from_db()
    assert (alice.is_superuser, [role.name for role in alice.groups.all()]) == (False, ["Support"])
    assert "You asked for this yourself" in decide(first)
    assert "Confirmed" in decide(second)
    alice.refresh_from_db()
    assert (alice.is_superuser, [role.name for role in alice.groups.all()]) == (True, [group.name])
    post_form(browser_of(first), alice, is_superuser="", groups=[])
    alice.refresh_from_db()
    assert (alice.is_superuser, alice.groups.count()) == (False, 0)


def test_rights_that_were_changed_meanwhile_are_not_overwritten(alice: User) -> None:
    first, second = superuser("first"), superuser("second")
    post_form(browser_of(first), alice, is_superuser="on")
    give_role(alice, "Support")
    assert "Their rights were changed meanwhile. Ask again." in decide(second)
    alice.refresh_from_db()
    assert (alice.is_superuser, [role.name for role in alice.groups.all()]) == (False, ["Support"])


def test_nobody_takes_another_operators_login_to_confirm_with_it() -> None:
    first, second = superuser("first"), superuser("second")
    browser = browser_of(first)
    assert browser.get(f"/admin/portal/user/{second.pk}/password/").status_code == 403
    assert browser.get(f"/admin/portal/user/{first.pk}/password/").status_code == 200
    post_form(browser, second, email="first2@example.org")
    second.refresh_from_db()
    assert second.email == "second@example.org"


def test_a_release_to_all_waits_and_is_of_the_files_that_were_confirmed() -> None:
    first, second = superuser("first"), superuser("second")
    browser = browser_of(first)
    draft = prepared(browser)
    browser.post(f"{BASE}{draft.pk}/sign/")
    assert "Another operator has to confirm this" in store(browser, draft, "release")
    assert not StoredFile.objects.exists()
    add_file(browser, draft, "more.txt", b"# one more\n")
    assert "The version has changed since this was requested." in decide(second)
    browser.post(f"{BASE}{draft.pk}/sign/")
    assert "Another operator has to confirm this" in store(browser, draft, "release")
    assert "Confirmed" in decide(second)
    draft.refresh_from_db()
    assert draft.app_version is not None and state(draft.app_version) == ReleaseState.RELEASED
    # Taken back by one, and sent again by two.
    rollout_address = f"{BASE}versions/{draft.app_version.pk}/release/"
    draft.app_version.is_deprecated = True
    draft.app_version.save()
    assert "Another operator has to confirm this" in browser.post(rollout_address, follow=True).content.decode()
    assert "Confirmed" in decide(second)
    draft.app_version.refresh_from_db()
    assert not draft.app_version.is_deprecated


def test_a_roll_back_by_one_brings_nothing_back_that_was_withdrawn(settings: Settings) -> None:
    first, second = superuser("first"), superuser("second")
    browser = browser_of(first)
    settings.TWO_PERSONS = False
    older, newer = (signed_version(browser, "release", version_num=101 + n) for n in range(2))
    do(browser, older, "withdraw")
    settings.TWO_PERSONS = True
    assert "The version before it is withdrawn." in do(browser, newer, "roll_back")
    assert (state(older), state(newer)) == (ReleaseState.WITHDRAWN, ReleaseState.RELEASED)
    browser.post(f"{BASE}versions/{older.pk}/release/")
    assert "Confirmed" in decide(second)
    do(browser, newer, "roll_back")
    assert (state(older), state(newer)) == (ReleaseState.RELEASED, ReleaseState.WITHDRAWN)


def test_a_new_code_signing_key_waits(tmp_path: Path) -> None:
    first, second = superuser("first"), superuser("second")
    (tmp_path / "list").write_text(key_change.signing_list().text())
    call_command("change_code_signing_key", "--sign", tmp_path / "list", tmp_path / "carried")
    before = code_signing.code_signing_key_text()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in (tmp_path / "carried").iterdir():
            archive.write(path, path.name)
    packed.seek(0)
    packed.name = "carried.zip"
    page = browser_of(first).post("/admin/scheduler/keychange/new-key/", {"archive": packed}, follow=True)
    assert "Another operator has to confirm this" in page.content.decode()
    assert code_signing.code_signing_key_text() == before
    assert "Confirmed" in decide(second)
    assert KeyChange.objects.get().new_key == code_signing.code_signing_key_text() != before


def test_a_site_with_several_superusers_is_told_that_it_is_off(settings: Settings) -> None:
    superuser("first")
    settings.TWO_PERSONS = False
    assert checks.check_two_persons(None, ["default"]) == []
    superuser("second")
    assert [found.id for found in checks.check_two_persons(None, ["default"])] == ["cobblestone.W029"]
    settings.TWO_PERSONS = True
    assert checks.check_two_persons(None, ["default"]) == []
