"""What `upgrade_check` says before `migrate`, and that `migrate` does not let the site wait behind it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.core.management.commands.migrate import Command as DjangosCommand
from django.db import IntegrityError, connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from portal.management.commands import migrate
from portal.upgrades import rules, waiting
from portal.upgrades.installation import package_problems
from tests.support.site_process import database_url

# No other migration needs it.
LAST = ("emulator", "0008_replays")
LOCKED = Path(__file__).parents[3] / "requirements.txt"


@pytest.fixture(autouse=True)
def _as_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    # Set for browsers in tests; Django's checks refuse it on a public site.
    monkeypatch.delenv("DJANGO_ALLOW_ASYNC_UNSAFE", raising=False)


def _checked() -> tuple[str, str]:
    """What the command writes, and with what it ends; empty: exit code 0."""
    out = StringIO()
    try:
        call_command("upgrade_check", stdout=out)
    except CommandError as error:
        assert error.returncode == 1
        return out.getvalue(), str(error)
    return out.getvalue(), ""


def _applied() -> MigrationRecorder:
    return MigrationRecorder(connection)


@pytest.mark.django_db
def test_nothing_waits() -> None:
    text, end = _checked()
    assert "No migration waits." in text
    assert "No stop is needed" in text
    assert end == ""


@pytest.mark.django_db
def test_a_migration_that_the_old_version_survives() -> None:
    _applied().record_unapplied(*LAST)
    text, end = _checked()
    assert "1 migrations wait.\n  emulator.0008_replays: the old version survives it" in text
    assert end == ""


@pytest.mark.django_db
def test_a_migration_that_removes_what_the_old_version_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "judge", lambda *_: [rules.Finding("Remove field x")])
    _applied().record_unapplied(*LAST)
    text, end = _checked()
    assert "emulator.0008_replays: a stop is needed\n    Stop: Remove field x." in text
    assert end.startswith("A stop is needed")


@pytest.mark.django_db
def test_a_database_of_a_newer_version() -> None:
    _applied().record_applied("portal", "9999_future")
    text, end = _checked()
    assert "portal.9999_future was applied" in text
    assert end == "The database is of a newer version than this code: install that version."


@pytest.mark.django_db(transaction=True)
def test_an_index_that_was_not_finished() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE shop (name text)")
        try:
            cursor.execute("INSERT INTO shop VALUES ('a'), ('a')")
            # It fails at the end, as one that is interrupted, and leaves the index behind.
            with pytest.raises(IntegrityError):
                cursor.execute("CREATE UNIQUE INDEX CONCURRENTLY shop_by_name ON shop (name)")
            text, end = _checked()
            assert "The index shop_by_name of shop is invalid" in text
            assert end.startswith("Invalid indexes")
            cursor.execute("DROP INDEX CONCURRENTLY shop_by_name")
            assert _checked()[1] == ""
        finally:
            cursor.execute("DROP TABLE shop")


@pytest.mark.django_db
@pytest.mark.parametrize(("nrows", "has_stop"), [(waiting.LARGE_ROWS - 1, False), (waiting.LARGE_ROWS, True)])
@pytest.mark.parametrize("table", ["portal_host", "accounting_day"])
def test_only_a_large_table_needs_a_stop(table: str, nrows: int, has_stop: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(relid::text) FROM pg_partition_tree(%s) WHERE isleaf", [table])
        (part,) = cursor.fetchone()
        parts = "oid = %s::regclass OR oid IN (SELECT relid FROM pg_partition_tree(%s))"
        cursor.execute(f"UPDATE pg_class SET reltuples = 0 WHERE {parts}", [table, table])
        cursor.execute("UPDATE pg_class SET reltuples = %s WHERE oid = %s::regclass", [nrows, part or table])
    assert waiting.estimated_rows(table) == nrows
    found = waiting._described("shop.0002", [rules.Finding("Create index", table)], "", "")
    assert bool(found.stops) == has_stop
    assert waiting._described("shop.0002", [rules.Finding("Create index", table)], "few use it", "").stops == ()
    assert waiting._described("shop.0002", [], "", "ids change").stops == ("ids change",)


@pytest.mark.django_db
def test_a_secret_that_machines_have_to_share(settings: Settings) -> None:
    settings.SEVERAL_MACHINES = True
    settings.SECRETS_MADE_HERE = ["CERTIFICATE_SECRET"]
    text, end = _checked()
    assert "Missing: CERTIFICATE_SECRET is not set." in text
    assert "missing" in end


def test_packages_are_compared_with_the_locked_ones(tmp_path: Path) -> None:
    assert list(package_problems(LOCKED)) == []
    own = tmp_path / "requirements.txt"
    own.write_text(
        "# a comment\ndjango==1.0 \\\n    --hash=sha256:00\n"
        "no-such-package==2.0\nalso-none==1.0 ; sys_platform == 'win32'\n"
    )
    old, missing = package_problems(own)
    assert old.startswith("django ") and "==1.0" in old
    assert missing.startswith("no-such-package is not installed")


@pytest.mark.django_db(transaction=True)
def test_two_do_not_migrate_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(database_url(), autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [migrate._LOCK])

        def end_other(_secs: float) -> None:
            other.execute("SELECT pg_advisory_unlock(%s)", [migrate._LOCK])

        with monkeypatch.context() as patch:
            patch.setattr(migrate, "LONGEST_WAIT_SECS", 0)
            with pytest.raises(CommandError, match="Another `migrate`"):
                call_command("migrate", check_unapplied=True)
        monkeypatch.setattr(migrate, "time", SimpleNamespace(sleep=end_other, monotonic=lambda: 0.0))
        out = StringIO()
        call_command("migrate", check_unapplied=True, verbosity=0, stdout=out)
        assert out.getvalue().count("waiting") == 1
        assert other.execute("SELECT pg_try_advisory_lock(%s)", [migrate._LOCK]).fetchone() == (True,)


@pytest.mark.django_db(transaction=True)
def test_migrate_says_that_the_database_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock is lost with the connection."""

    def lose_database(*_: object, **_options: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(DjangosCommand, "handle", lose_database)
    try:
        with pytest.raises(CommandError, match=r"The database was lost: terminating.*What was applied is kept"):
            call_command("migrate")
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.long
def test_migrate_gives_up_a_lock_that_others_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "ATTEMPTS", 2)
    monkeypatch.setattr(migrate, "PAUSE_SECS", 0.0)
    monkeypatch.setattr(migrate, "LOCK_WAIT", "50ms")
    with psycopg.connect(database_url()) as other:
        other.execute("LOCK TABLE emulator_replay IN ACCESS SHARE MODE")
        out = StringIO()
        with pytest.raises(CommandError, match="pg_stat_activity"):
            call_command("migrate", "emulator", "0007", stdout=out)
        assert "attempt 2 of 2" in out.getvalue()
    assert LAST in _applied().applied_migrations()
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)
