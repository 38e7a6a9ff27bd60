"""Migrations of tables with rows: what they make of these, and that they do not keep others from them for long."""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module

import pytest
from django.apps.registry import Apps
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import IntegrityError, connection, migrations
from django.db.migrations.loader import MigrationLoader

from accounting.models import HostClient, HostProject, Project
from portal.models import User
from tests.support.accounting_factories import make_host

pytestmark = pytest.mark.django_db


def models_at(migration: str) -> Apps:
    """The models of this app's migrations up to that one."""
    apps: Apps = MigrationLoader(connection).project_state([("accounting", migration)]).apps
    return apps


def with_highest() -> None:
    """Gives the table of computers' totals the column of the highest totals before a reset again."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounting_hostproject ADD high numeric(22)[]")
        cursor.execute("ALTER TABLE accounting_hostproject DROP CONSTRAINT hostproject_earlier_and_restart")


def set_highest(high: int, *rows: HostProject) -> None:
    with connection.cursor() as cursor:
        for row in rows:
            cursor.execute(
                "UPDATE accounting_hostproject SET high = %s WHERE host_id = %s AND project_id = %s",
                [[high] * 6, row.host_id, row.project_id],
            )


def test_rows_from_before_the_totals_at_a_reset_were_kept_get_zeros(
    alice: User, projects: list[Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [make_host(alice, f"node-{number}") for number in range(3)]
    with_highest()
    for host in hosts:
        set_highest(7, HostProject.objects.create(host=host, project=projects[0]))
        HostProject.objects.create(host=host, project=projects[1])
    set_highest(7, HostProject.objects.create(host=hosts[0], project=projects[2], restart=[5] * 6))
    migration = import_module("accounting.migrations.0012_validate_constraints")
    monkeypatch.setattr(migration, "BATCH_HOSTS", 1)
    with connection.schema_editor() as editor:
        migration.begin_at_zero(models_at("0011_host_client"), editor)
    rows = HostProject.objects.order_by("host_id", "project_id").values_list("restart", flat=True)
    assert list(rows) == [[0] * 6, None, [5] * 6, [0] * 6, None, [0] * 6, None]


def test_the_highest_totals_before_a_reset_are_the_first_of_the_list(
    alice: User, projects: list[Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [make_host(alice, f"node-{number}") for number in range(3)]
    with_highest()
    for host in hosts:
        set_highest(7, HostProject.objects.create(host=host, project=projects[0], restart=[5] * 6))
        HostProject.objects.create(host=host, project=projects[1])
    migration = import_module("accounting.migrations.0018_fill_earlier_totals")
    monkeypatch.setattr(migration, "BATCH_HOSTS", 2)
    with connection.schema_editor() as editor:
        migration.move_highest(models_at("0017_earlier_totals"), editor)
    rows = HostProject.objects.order_by("host_id", "project_id").values_list("earlier", "restart")
    reset = ([[Decimal(7)] * 6], [Decimal(5)] * 6)
    never: tuple[list[list[Decimal]], None] = ([], None)
    assert list(rows) == [reset, never] * 3


def test_clients_whose_place_another_one_took_keep_their_totals_from_before_a_reset(
    alice: User, projects: list[Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(alice, "node")
    reset = {"reported": [1] * 6, "handed": None, "high": [10**20] * 6, "restart": [0] * 6, "listed": True}
    never = {"reported": [1] * 6, "handed": None, "high": None, "restart": None, "listed": True}
    for number, books in enumerate(({"projects": {"1": reset, "2": never}}, {}, {"projects": {"1": never}})):
        HostClient.objects.create(host=host, cpid=f"{number}", books=books)
    migration = import_module("accounting.migrations.0018_fill_earlier_totals")
    monkeypatch.setattr(migration, "BATCH_CLIENTS", 2)
    with connection.schema_editor() as editor:
        migration.move_highest_of_other_clients(models_at("0017_earlier_totals"), editor)
    rest = {"reported": [1] * 6, "handed": None, "listed": True}
    now_reset = {**rest, "earlier": [[10**20] * 6], "restart": [0] * 6}
    now_never: dict[str, object] = {**rest, "earlier": [], "restart": None}
    books_now = HostClient.objects.order_by("cpid").values_list("books", flat=True)
    assert list(books_now) == [
        {"projects": {"1": now_reset, "2": now_never}},
        {},
        {"projects": {"1": now_never}},
    ]


@pytest.mark.parametrize(
    ("adding", "checking"),
    [
        ("0010_restart", "0012_validate_constraints"),
        ("0017_earlier_totals", "0018_fill_earlier_totals"),
    ],
)
def test_rows_are_checked_apart_from_the_transaction_that_adds_a_constraint(adding: str, checking: str) -> None:
    operations = import_module(f"accounting.migrations.{adding}").Migration.operations
    checks = [type(operation) for operation in operations if isinstance(operation, migrations.AddConstraint)]
    assert checks == [AddConstraintNotValid] * 2
    assert not import_module(f"accounting.migrations.{checking}").Migration.atomic
    with connection.cursor() as cursor:
        cursor.execute("SELECT conname FROM pg_constraint WHERE NOT convalidated AND conname LIKE 'hostproject%'")
        assert cursor.fetchall() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"earlier": [[1] * 5]},
        {"earlier": [[number] * 6 for number in range(17)]},
        {"earlier": [], "restart": [0] * 6},
    ],
)
def test_the_database_refuses_earlier_totals_that_cannot_be(
    wrong: dict[str, object], alice: User, projects: list[Project]
) -> None:
    with pytest.raises(IntegrityError):
        HostProject.objects.create(host=make_host(alice, "node"), project=projects[0], **wrong)
