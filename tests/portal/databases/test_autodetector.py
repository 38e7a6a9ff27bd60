"""Migrations know nothing of texts that people read."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.db import models
from django.db.migrations import CreateModel, Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from portal.databases.autodetector import TextlessAutodetector

OWN_APPS = ["portal", "accounting", "credit", "scheduler", "emulator"]


def state_with(field: models.Field[Any, Any], **options: Any) -> ProjectState:
    state = ProjectState()
    state.add_model(
        ModelState("portal", "Example", [("id", models.BigAutoField(primary_key=True)), ("x", field)], options)
    )
    return state


def changes(before: ProjectState, after: ProjectState) -> list[type[Operation]]:
    found = TextlessAutodetector(before, after).changes(graph=MigrationLoader(None).graph)
    return [type(operation) for migration in found.get("portal", []) for operation in migration.operations]


@pytest.mark.parametrize(
    ("field", "options"),
    [
        (models.CharField("another label", max_length=9), {}),
        (models.CharField(max_length=9, help_text="another help"), {}),
        (models.CharField(max_length=9, choices=[("a", "another choice")]), {}),
        (models.CharField(max_length=9), {"verbose_name": "other", "verbose_name_plural": "others"}),
    ],
    ids=["label", "help", "choices", "name of the table"],
)
def test_a_change_of_words_is_no_migration(field: models.Field[Any, Any], options: dict[str, Any]) -> None:
    assert changes(state_with(models.CharField("label", max_length=9)), state_with(field, **options)) == []


def test_a_longer_column_is_a_migration() -> None:
    before, after = state_with(models.CharField(max_length=9)), state_with(models.CharField(max_length=10))
    assert [operation.__name__ for operation in changes(before, after)] == ["AlterField"]


def own_migrations() -> list[Migration]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return [migration for (app, _), migration in loader.disk_migrations.items() if app in OWN_APPS]


def test_no_migration_has_texts() -> None:
    assert {migration.app_label for migration in own_migrations()} == set(OWN_APPS) & set(settings.INSTALLED_APPS)
    for migration in own_migrations():
        for operation in migration.operations:
            fields = dict(operation.fields) if isinstance(operation, CreateModel) else {}
            if field := getattr(operation, "field", None):
                fields["field"] = field
            for name, field in fields.items():
                written = field.deconstruct()[3]
                assert not {"verbose_name", "help_text", "choices"} & set(written), f"{migration}: {operation}: {name}"
