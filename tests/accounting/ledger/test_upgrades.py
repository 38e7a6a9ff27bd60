"""Migrations of tables with rows: what they make of these, and that they do not keep others from them for long."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import connection, migrations

from accounting.models import HostProject, Project
from portal.models import User
from tests.support.accounting_factories import make_host

pytestmark = pytest.mark.django_db


def test_rows_from_before_the_totals_at_a_reset_were_kept_get_zeros(
    alice: User, projects: list[Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [make_host(alice, f"node-{number}") for number in range(3)]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounting_hostproject DROP CONSTRAINT hostproject_high_and_restart")
    for host in hosts:
        HostProject.objects.create(host=host, project=projects[0], high=[7] * 6)
        HostProject.objects.create(host=host, project=projects[1])
    HostProject.objects.create(host=hosts[0], project=projects[2], high=[7] * 6, restart=[5] * 6)
    migration = import_module("accounting.migrations.0012_validate_constraints")
    monkeypatch.setattr(migration, "BATCH_HOSTS", 1)
    with connection.schema_editor() as editor:
        migration.begin_at_zero(apps, editor)
    rows = HostProject.objects.order_by("host_id", "project_id").values_list("high", "restart")
    reset, never = ([7] * 6, [0] * 6), (None, None)
    assert list(rows) == [reset, never, ([7] * 6, [5] * 6), reset, never, reset, never]


def test_rows_are_checked_apart_from_the_transaction_that_adds_a_constraint() -> None:
    adding = import_module("accounting.migrations.0010_restart").Migration.operations
    checks = [type(operation) for operation in adding if isinstance(operation, migrations.AddConstraint)]
    assert checks == [AddConstraintNotValid] * 2
    assert not import_module("accounting.migrations.0012_validate_constraints").Migration.atomic
    with connection.cursor() as cursor:
        cursor.execute("SELECT conname FROM pg_constraint WHERE NOT convalidated AND conname LIKE 'hostproject%'")
        assert cursor.fetchall() == []
