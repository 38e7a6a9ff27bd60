"""`make lint` refuses migrations that the version before would not survive, or that make everybody wait."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

_MIGRATION = """\
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    {facts}
    operations = [{operation}]
"""
_TABLE = (
    'migrations.CreateModel("Example", [("id", models.BigAutoField(primary_key=True)), ("a", models.IntegerField())])'
)
_INDEX = 'models.Index(fields=["a"], name="example_a")'


@pytest.fixture
def migrations(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of migrations that stands for an app's own; the first makes the table. No other app needs this one's."""
    folder = tmp_path / "linted_migrations"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "0001_initial.py").write_text(_MIGRATION.format(facts="initial = True", operation=_TABLE))
    monkeypatch.syspath_prepend(tmp_path)
    settings.MIGRATION_MODULES = {"emulator": "linted_migrations"}
    for name in [name for name in sys.modules if name.startswith("linted_migrations")]:
        monkeypatch.delitem(sys.modules, name)
    return folder


def lint(folder: Path, operation: str, facts: str = "") -> bool:
    """Whether a second migration with this operation is accepted."""
    facts = f'dependencies = [("emulator", "0001_initial")]\n    {facts}'
    (folder / "0002_second.py").write_text(_MIGRATION.format(facts=facts, operation=operation))
    try:
        call_command("lintmigrations", "emulator")
    except SystemExit as ended:
        assert ended.code == 1
        return False
    return True


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("operation", "sentence"),
    [
        ('migrations.AddField("Example", "b", models.IntegerField(default=0))', "NOT NULL constraint on columns"),
        ('migrations.RemoveField("Example", "a")', "DROPPING columns"),
        ('migrations.RenameField("Example", "a", "b")', "RENAMING columns"),
        ('migrations.DeleteModel("Example")', "DROPPING table"),
        ('migrations.AlterField("Example", "a", models.TextField())', "ALTERING columns"),
        (f'migrations.AddIndex("Example", {_INDEX})', "CREATE INDEX locks table"),
        (
            'migrations.AddConstraint("Example", models.UniqueConstraint(fields=["a"], name="example_once"))',
            "ADDING unique constraint",
        ),
    ],
)
def test_what_the_version_before_would_not_survive_is_refused(
    migrations: Path, capsys: pytest.CaptureFixture[str], operation: str, sentence: str
) -> None:
    assert not lint(migrations, operation)
    assert sentence in capsys.readouterr().out


# An index that is made concurrently needs a connection without a transaction.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("operation", "facts"),
    [
        ('migrations.AddField("Example", "b", models.IntegerField(null=True))', ""),
        ('migrations.AddField("Example", "b", models.IntegerField(db_default=0))', ""),
        (f'AddIndexConcurrently("Example", {_INDEX})', "atomic = False"),
        (_TABLE.replace("Example", "Other"), ""),
    ],
)
def test_what_only_adds_is_accepted(migrations: Path, operation: str, facts: str) -> None:
    assert lint(migrations, operation, facts)


@pytest.mark.django_db
def test_the_migrations_of_this_version_are_accepted() -> None:
    call_command("lintmigrations")
