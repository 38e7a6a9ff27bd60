"""What of a migration the version that is running survives; and that all migrations since the rules came keep them."""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently
from django.db import models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models.functions import Now

from portal.upgrades import rules

# The last migrations that were written before the rules.
BASELINE: Final = {"portal": 28, "accounting": 39, "credit": 33, "scheduler": 21, "emulator": 7}
LOADER: Final = MigrationLoader(None)
NEWER: Final = sorted(
    key for key in LOADER.disk_migrations if key[0] in BASELINE and int(key[1][:4]) > BASELINE[key[0]]
)


@pytest.mark.parametrize("key", NEWER, ids=".".join)
def test_a_new_migration_is_survived_or_says_what_it_needs(key: tuple[str, str]) -> None:
    migration = LOADER.disk_migrations[key]
    if any(rules.declared(migration)):
        return
    before = LOADER.project_state(key, at_end=False)
    assert rules.judge(migration, before) == []


def _before() -> ProjectState:
    state = ProjectState()
    operations.CreateModel(
        "Order",
        [
            ("id", models.BigAutoField(primary_key=True)),
            ("name", models.CharField(max_length=10)),
            ("note", models.TextField(null=True)),
        ],
    ).state_forwards("shop", state)
    return state


def _judged(*what: Operation) -> list[rules.Finding]:
    class Second(Migration):
        operations = list(what)

    return rules.judge(Second("0002", "shop"), _before())


def _field(field: models.Field[Any, Any]) -> Operation:
    return operations.AddField("order", "extra", field)


def _changed(name: str, field: models.Field[Any, Any]) -> Operation:
    return operations.AlterField("order", name, field)


INDEX: Final = models.Index(fields=["name"], name="by_name")
NAMED: Final = models.CheckConstraint(condition=~models.Q(name=""), name="named")
OTHER: Final = operations.CreateModel("Other", [("id", models.BigAutoField(primary_key=True))])


@pytest.mark.parametrize(
    "operation",
    [
        OTHER,
        _field(models.TextField(null=True)),
        _field(models.IntegerField(default=0, db_default=0)),
        _field(models.ManyToManyField("shop.order")),
        _changed("name", models.CharField(max_length=20)),
        _changed("name", models.TextField()),
        _changed("name", models.CharField(max_length=10, null=True)),
        _changed("name", models.CharField(max_length=10, verbose_name="title", choices=[("a", "A")])),
        AddIndexConcurrently("order", INDEX),
        AddConstraintNotValid("order", NAMED),
        operations.RunSQL(operations.RunSQL.noop),
        operations.RunPython(operations.RunPython.noop),
        operations.SeparateDatabaseAndState(state_operations=[operations.RemoveField("order", "note")]),
    ],
    ids=lambda each: each.describe(),
)
def test_the_old_version_survives(operation: Operation) -> None:
    assert _judged(operation) == []


@pytest.mark.parametrize(
    "operation",
    [
        _field(models.IntegerField(default=0)),
        _changed("name", models.CharField(max_length=5)),
        _changed("name", models.IntegerField()),
        _changed("note", models.TextField(default="")),
        operations.RemoveField("order", "note"),
        operations.RenameField("order", "note", "remark"),
        operations.RenameModel("order", "purchase"),
        operations.DeleteModel("order"),
        operations.AlterModelTable("order", "purchases"),
        operations.RunSQL("DROP TABLE shop_order"),
        operations.RunPython(print),
        operations.SeparateDatabaseAndState([operations.RemoveField("order", "note")]),
    ],
    ids=lambda each: each.describe(),
)
def test_the_old_version_does_not_survive(operation: Operation) -> None:
    (found,) = _judged(operation)
    assert found.locked == ""


@pytest.mark.parametrize(
    "operation",
    [
        _field(models.IntegerField(null=True, db_index=True)),
        _field(models.ForeignKey("shop.order", models.CASCADE, null=True)),
        _field(models.DateTimeField(db_default=Now())),
        _field(
            models.GeneratedField(expression=models.F("id") + 1, output_field=models.IntegerField(), db_persist=True)
        ),
        _changed("name", models.CharField(max_length=10, db_index=True)),
        operations.AddIndex("order", INDEX),
        operations.AddConstraint("order", NAMED),
        operations.AlterUniqueTogether("order", {("name", "note")}),
    ],
    ids=lambda each: each.describe(),
)
def test_a_large_table_would_be_locked_for_long(operation: Operation) -> None:
    (found,) = _judged(operation)
    assert found.locked == "shop_order"


def test_a_table_that_the_old_version_does_not_have_may_be_changed() -> None:
    index = models.Index(fields=["id"], name="by_id")
    assert _judged(OTHER, operations.AddIndex("other", index), operations.RemoveField("other", "id")) == []
    assert [found.locked for found in _judged(operations.AddIndex("order", INDEX))] == ["shop_order"]
