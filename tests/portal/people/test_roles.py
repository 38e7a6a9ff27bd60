"""The site keeps the groups of roles as the one table says, and docs/reference/roles.md says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import connection
from django.test import Client

from portal.extras import site_apps
from portal.models import User
from portal.operators.roles import ROLES, keep_groups
from tests.support.credit_factories import make_app, make_result, make_workunit
from tests.support.page_text import text_of
from tests.support.roles import make_person
from tests.support.sessions import sign_in_lately

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "roles.md"


def permissions_of(group: Group) -> set[str]:
    return {f"{permission.content_type.app_label}.{permission.codename}" for permission in group.permissions.all()}


def test_every_permission_of_a_role_exists(db: None) -> None:
    found = Permission.objects.values_list("content_type__app_label", "codename")
    there = {f"{app}.{codename}" for app, codename in found}
    assert {permission for role in ROLES for permission in role.permissions} - there == set()


def test_a_migration_brings_the_groups_up_to_date(db: None) -> None:
    keep_groups(None, apps=apps, using=connection.alias)
    group = Group.objects.get(name="Support")
    group.permissions.set(Permission.objects.filter(codename="view_user"))
    other = Group.objects.create(name="Made by hand")
    other.permissions.set(Permission.objects.filter(codename="view_user"))
    call_command("migrate", verbosity=0)
    for role in ROLES:
        assert permissions_of(Group.objects.get(name=role.name)) == set(role.permissions)
    assert permissions_of(other) == {"portal.view_user"}


def test_the_document_names_each_role_with_its_permissions() -> None:
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.M | re.S))
    labels = "|".join(app.label for app in site_apps())
    for role in ROLES:
        named = set(re.findall(rf"`((?:{labels})\.\w+)`", sections[role.name]))
        assert named == set(role.permissions), role.name


@pytest.mark.parametrize("role", [role.name for role in ROLES if role.name != "Project administrator"])
def test_on_the_sites_pages_too_others_tasks_are_for_who_looks_after_the_project(alice: User, role: str) -> None:
    user = make_person(role)
    task = make_result(make_workunit(make_app()), alice.hosts.create(domain_name="attic-pc"))
    client = Client()
    sign_in_lately(client, user)
    assert client.get(f"/tasks/{task.pk}/").status_code == 404
    assert client.get(f"/workunits/{task.workunit_id}/").status_code == 404


def test_a_job_submitter_sees_their_own_batches_alone(alice: User) -> None:
    user = make_person("Job submitter")
    app = make_app()
    for owner, name in ((user, "mine"), (alice, "of alice")):
        app.batches.create(owner=owner, name=name)
    client = Client()
    sign_in_lately(client, user)
    page = text_of(client.get("/project/batches/"))
    assert "mine" in page and "of alice" not in page
    other = app.batches.get(owner=alice)
    assert client.get(f"/project/batches/{other.pk}/").status_code == 404
    assert client.post(f"/project/batches/{other.pk}/cancel/").status_code == 404


def test_support_sees_no_batches(alice: User) -> None:
    make_app().batches.create(owner=alice, name="of alice")
    client = Client()
    sign_in_lately(client, make_person("Support"))
    assert client.get("/project/batches/").status_code == 404
