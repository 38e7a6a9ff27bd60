"""Only superusers change rights, whatever permissions other operators have."""

from __future__ import annotations

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Permission
from django.test import Client

from portal.models import User

RIGHTS = {"is_staff": "on", "is_superuser": "on"}


@pytest.fixture
def helper(db: None) -> User:
    """An operator who may change people and second factors, and is no superuser."""
    user = User.objects.create_user("helper@example.org", "helper's secret", is_staff=True)
    codenames = ["view_user", "change_user", "view_authenticator", "delete_authenticator"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


def change(client: Client, user: User, **fields: str) -> int:
    form = {"email": user.email, "name": user.name, "is_active": "on", **fields}
    return client.post(f"/admin/portal/user/{user.pk}/change/", form).status_code


def test_who_may_change_people_cannot_give_rights(helper: User, alice: User, client: Client) -> None:
    client.force_login(helper)
    permission = Permission.objects.get(codename="add_user")
    assert change(client, alice, name="Alison", user_permissions=str(permission.pk), **RIGHTS) == 302
    alice.refresh_from_db()
    assert (alice.name, alice.is_staff, alice.is_superuser) == ("Alison", False, False)
    assert not alice.user_permissions.exists()


def test_who_may_change_people_changes_no_operator_and_not_their_own_rights(
    helper: User, operator: User, client: Client
) -> None:
    client.force_login(helper)
    for user in (helper, operator):
        assert change(client, user, email="taken@example.org", **RIGHTS) == 403
        form = {"usable_password": "true", "password1": "tulips in may", "password2": "tulips in may"}
        assert client.post(f"/admin/portal/user/{user.pk}/password/", form).status_code == 403
    helper.refresh_from_db()
    assert not helper.is_superuser
    assert not User.objects.filter(email="taken@example.org").exists()


def test_a_superuser_gives_rights(operator: User, alice: User, client: Client) -> None:
    client.force_login(operator)
    assert change(client, alice, is_staff="on") == 302
    alice.refresh_from_db()
    assert alice.is_staff


def test_only_superusers_switch_off_an_operators_second_factor(
    helper: User, operator: User, alice: User, client: Client
) -> None:
    client.force_login(helper)
    for user, status in ((operator, 403), (alice, 302)):
        factor = Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data={})
        url = f"/admin/mfa/authenticator/{factor.pk}/delete/"
        assert client.post(url, {"post": "yes"}).status_code == status
    many = {"action": "delete_selected", "_selected_action": [str(factor.pk)], "post": "yes"}
    client.post("/admin/mfa/authenticator/", many)
    assert list(Authenticator.objects.values_list("user", flat=True)) == [operator.pk]
