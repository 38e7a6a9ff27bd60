"""The test database: copied from a template that has all migrations, and emptied quickly after tests that commit."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import django
from django.apps import apps
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.test import TransactionTestCase
from django.utils import timezone

# "tt" in an advisory lock's number
_LOCK: Final = 0x7474
_KEPT: Final = frozenset({"django_content_type", "auth_permission", "django_migrations"})
_WITH_PAGES: Final = """
SELECT relname FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL(%s) AND pg_relation_size(oid) > 0
"""


def use_template() -> None:
    """Let Django copy the test database from one that has all migrations; the first test process makes it.

    Its name has a digest of the migrations and the month, for which they make partitions: it serves later runs too.
    """
    name = f"test_template_{_digest()}"
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        cursor.execute(r"SELECT datname FROM pg_database WHERE datname LIKE 'test\_template\_%'")
        present = [row[0] for row in cursor.fetchall()]
        if name not in present:
            for outdated in present:
                cursor.execute(f'DROP DATABASE "{outdated}"')
            _make("test_template_unfinished")
            cursor.execute(f'ALTER DATABASE "test_template_unfinished" RENAME TO "{name}"')
    connection.settings_dict["TEST"]["TEMPLATE"] = name


def _digest() -> str:
    digest = hashlib.md5(f"{timezone.now():%Y-%m}".encode(), usedforsecurity=False)
    for app in sorted(apps.get_app_configs(), key=lambda app: app.label):
        for file in sorted(Path(app.path, "migrations").glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _make(name: str) -> None:
    """Create a database of this name by Django's own means; the settings stay as they are."""
    before = connection.settings_dict["NAME"], connection.settings_dict["TEST"]["NAME"]
    connection.settings_dict["TEST"]["NAME"] = name
    try:
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    finally:
        _close()
        connection.settings_dict["NAME"], connection.settings_dict["TEST"]["NAME"] = before
        settings.DATABASES[connection.alias]["NAME"] = before[0]


def commit_without_waiting() -> None:
    """Let transactions in the test database not wait for the disk: no test cuts the power of this server."""
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{connection.settings_dict["NAME"]}" SET synchronous_commit = off')
    _close()


def end_other_sessions() -> None:
    """End what a test's thread or process left behind: a database with sessions cannot be dropped."""
    _close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [connection.settings_dict["NAME"]],
        )


def backend() -> DatabaseWrapper:
    """What is behind ``connection``, which has a pool."""
    found = connections[DEFAULT_DB_ALIAS]
    assert isinstance(found, DatabaseWrapper)
    return found


def _close() -> None:
    connection.close()
    backend().close_pool()


def empty_tables(_case: TransactionTestCase) -> None:
    """After a test that commits: delete all rows, without looking at foreign keys.

    Django's own way, to truncate all tables and make all permissions again, takes twenty times as long.
    """
    with connection.cursor() as cursor:
        # Most tables have never had a row: to look into each takes five times as long as to look at their sizes.
        cursor.execute(_WITH_PAGES, [[*_KEPT]])
        deletes = [f'DELETE FROM "{table}"' for (table,) in cursor.fetchall()]
        cursor.execute("; ".join(["BEGIN", "SET LOCAL session_replication_role = replica", *deletes, "COMMIT"]))


if __name__ == "__main__":
    django.setup()
    use_template()
