"""People with roles, as a superuser would make them in the admin."""

from __future__ import annotations

from django.apps import apps
from django.contrib.auth.models import Group
from django.db import connection

from portal.models import User
from portal.operators.roles import ROLES, keep_groups


def make_person(role: str) -> User:
    """Somebody new with this role."""
    login = role.lower().replace(" ", ".")
    user = User.objects.create_user(f"{login}@example.org", "a secret", name=role)
    give_role(user, role)
    return user


def give_role(user: User, role: str) -> None:
    """Give somebody this role; those whose role works in the admin are staff."""
    if not Group.objects.filter(name=role).exists():
        # Tests that commit empty the table of groups.
        keep_groups(None, apps=apps, using=connection.alias)
    user.is_staff = next(each for each in ROLES if each.name == role).in_admin
    user.save(update_fields=["is_staff"])
    user.groups.add(Group.objects.get(name=role))
