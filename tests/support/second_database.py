"""Copies of the test database: what would have become of it otherwise. The test has to commit what it makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from tests.support.database import backend


def copy_database(name: str) -> None:
    """Copy the database that is in use, as it is now; sessions that earlier tests have left there are ended."""
    original = connection.settings_dict["NAME"]
    _close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
        cursor.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [original])
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{original}"')


@contextmanager
def in_database(name: str, host: str | None = None) -> Iterator[None]:
    """Everything happens in that database meanwhile, on another server if one is named."""
    original = {key: connection.settings_dict[key] for key in ("NAME", "HOST")}
    _close()
    connection.settings_dict.update({"NAME": name, "HOST": original["HOST"] if host is None else host})
    try:
        yield
    finally:
        _close()
        connection.settings_dict.update(original)


def drop_database(name: str) -> None:
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')


def _close() -> None:
    connection.close()
    backend().close_pool()
