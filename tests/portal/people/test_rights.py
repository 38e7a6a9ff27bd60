"""Only superusers change rights, whatever permissions other operators have; and operators need a second factor."""

from __future__ import annotations

import os

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, Permission
from django.test import Client
from pytest_django import Settings

from portal.models import ApiToken, ClientKey, Host, User
from portal.operators.roles import ROLES
from portal.people.accounts import issue_client_key
from portal.people.api_tokens import issue_token
from tests.support.roles import make_person
from tests.support.sessions import sign_in_lately
from tests.support.settings_of import settings_of

RIGHTS = {"is_staff": "on", "is_superuser": "on"}


@pytest.fixture
def helper(db: None) -> User:
    """An operator who may change people, and is no superuser."""
    user = User.objects.create_user("helper@example.org", "helper's secret", is_staff=True)
    codenames = ["view_user", "change_user"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


def change(client: Client, user: User, **fields: str) -> int:
    form = {"email": user.email, "name": user.name, "is_active": "on", **fields}
    return client.post(f"/admin/portal/user/{user.pk}/change/", form).status_code


def test_who_may_change_people_cannot_give_rights(helper: User, alice: User, client: Client) -> None:
    sign_in_lately(client, helper)
    permission = Permission.objects.get(codename="add_user")
    assert change(client, alice, name="Alison", user_permissions=str(permission.pk), **RIGHTS) == 302
    alice.refresh_from_db()
    assert (alice.name, alice.is_staff, alice.is_superuser) == ("Alison", False, False)
    assert not alice.user_permissions.exists()


def test_who_may_change_people_changes_no_operator_and_not_their_own_rights(
    helper: User, operator: User, client: Client
) -> None:
    sign_in_lately(client, helper)
    for user in (helper, operator):
        assert change(client, user, email="taken@example.org", **RIGHTS) == 403
        form = {"usable_password": "true", "password1": "tulips in may", "password2": "tulips in may"}
        assert client.post(f"/admin/portal/user/{user.pk}/password/", form).status_code == 403
    helper.refresh_from_db()
    assert not helper.is_superuser
    assert not User.objects.filter(email="taken@example.org").exists()


def test_a_superuser_gives_rights(alice: User, desk: Client) -> None:
    assert change(desk, alice, is_staff="on") == 302
    alice.refresh_from_db()
    assert alice.is_staff


def test_a_password_that_an_operator_sets_ends_what_the_old_one_gave_access_to(
    alice: User, bob: User, desk: Client
) -> None:
    for user in (alice, bob):
        issue_client_key(user, ClientKey.Origin.LOOKUP)
        issue_token(user, name="x", scopes=["read:hosts"], lifetime=None)
    browser = Client()
    browser.post("/account/login/", {"login": alice.email, "password": "alice's secret"})
    form = {"usable_password": "true", "password1": "tulips in may", "password2": "tulips in may"}
    assert desk.post(f"/admin/portal/user/{alice.pk}/password/", form).status_code == 302
    assert list(ClientKey.objects.filter(revoked_at=None).values_list("user", flat=True)) == [bob.pk]
    assert list(ApiToken.objects.filter(revoked_at=None).values_list("user", flat=True)) == [bob.pk]
    assert browser.get("/account/keys/").status_code == 302
    assert desk.get("/admin/").status_code == 200


def test_roles_are_chosen_by_what_they_are_for(alice: User, desk: Client) -> None:
    make_person("Support")  # with the groups of all roles
    page = desk.get(f"/admin/portal/user/{alice.pk}/change/").content.decode()
    assert page.count('name="groups"') == len(ROLES)
    assert "Support: Helps people with their accounts" in page


def test_only_superusers_give_roles(helper: User, operator: User, alice: User, client: Client) -> None:
    role = Group.objects.get_or_create(name="Support")[0]
    sign_in_lately(client, helper)
    change(client, alice, groups=str(role.pk))
    assert not alice.groups.exists()
    sign_in_lately(client, operator)
    # It works in the admin, which is for operators.
    assert change(client, alice, groups=str(role.pk)) == 200
    assert change(client, alice, groups=str(role.pk), is_staff="on") == 302
    assert list(alice.groups.all()) == [role]
    assert "groups" in str(alice.security_events.get(kind="rights").detail)


def test_conditions_in_an_address_find_out_no_secret(alice: User, desk: Client) -> None:
    Host.objects.create(owner=alice, domain_name="studio")
    for page, condition in (
        ("user", "password__startswith"),
        ("user", "client_password__startswith"),
        ("host", "token__startswith"),
        ("clientkey", "key_hash__gt"),
        ("apitoken", "token_hash__gt"),
    ):
        assert desk.get(f"/admin/portal/{page}/?{condition}=a").status_code == 400, condition


class TestOperatorsNeedASecondFactor:
    @pytest.fixture(autouse=True)
    def demanded(self, settings: Settings) -> None:
        settings.STAFF_SECOND_FACTOR = True

    @pytest.mark.parametrize(
        "path",
        ["/admin/", "/admin/portal/user/", "/home/", "/tasks/", "/api/v1/hosts/", "/account/tokens/", "/account/keys/"],
    )
    def test_without_one_every_page_leads_to_where_it_is_set_up(self, operator: User, desk: Client, path: str) -> None:
        answer = desk.get(path, follow=True)
        assert answer.redirect_chain == [("/account/2fa/", 302)]
        assert "Operators need a second factor here." in answer.content.decode()
        change(desk, operator, name="changed")
        operator.refresh_from_db()
        assert operator.name != "changed"

    def test_without_one_they_make_no_token_and_still_sign_in_and_confirm_their_address(
        self, operator: User, client: Client
    ) -> None:
        login = {"login": operator.email, "password": "operator's secret"}
        assert client.post("/account/login/", login).status_code == 302
        client.post("/account/tokens/", {"name": "x", "scopes": ["read:hosts"], "days": "365"})
        assert not operator.api_tokens.exists()
        for path in ("/account/2fa/", "/account/reauthenticate/", "/account/email/", "/account/logout/"):
            assert client.get(path).status_code == 200

    def test_without_one_their_tokens_are_refused(self, operator: User, alice: User) -> None:
        for user, status in ((operator, 401), (alice, 200)):
            token = issue_token(user, name="x", scopes=["read:hosts"], lifetime=None)
            answer = Client(headers={"Authorization": f"Bearer {token}"}).get("/api/v1/hosts/")
            assert answer.status_code == status

    @pytest.mark.parametrize("kind", [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN])
    def test_with_one_they_get_in_and_the_login_asks_for_it(
        self, operator: User, desk: Client, kind: Authenticator.Type
    ) -> None:
        Authenticator.objects.create(user=operator, type=kind, data={})
        assert desk.get("/admin/").status_code == 200
        browser = Client()
        login = {"login": operator.email, "password": "operator's secret"}
        assert browser.post("/account/login/", login).headers["Location"] == "/account/2fa/authenticate/"
        assert browser.get("/admin/").status_code == 302

    def test_recovery_codes_alone_are_none(self, operator: User, desk: Client) -> None:
        Authenticator.objects.create(user=operator, type=Authenticator.Type.RECOVERY_CODES, data={})
        assert desk.get("/admin/").status_code == 302

    def test_volunteers_need_none(self, alice: User, client: Client) -> None:
        sign_in_lately(client, alice)
        assert client.get("/home/").status_code == 200


@pytest.mark.parametrize(("url", "demanded"), [("https://portal.example.org/", True), ("", False)])
def test_a_public_site_demands_it_by_default(url: str, demanded: bool) -> None:
    public = {"SITE_URL": url, "SECRET_KEY": "s" * 60}
    assert settings_of({**os.environ, **public})["STAFF_SECOND_FACTOR"] is demanded
