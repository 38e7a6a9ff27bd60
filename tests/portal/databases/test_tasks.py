"""A task that loses its database is done again."""

from __future__ import annotations

from typing import Any

import pytest
from celery.exceptions import Retry
from django.db import DataError, connection

from portal.celery import app

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("headers", [{}, {"every_secs": "60"}])
def test_a_task_that_loses_its_database_is_done_again(headers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.celery.RETRY_SECS", 0)
    runs: list[dict[str, str]] = []

    @app.task(name=f"tests.lose_database{len(headers)}")
    def lose_database() -> str:
        runs.append(lose_database.request.headers or {})
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())" if len(runs) == 1 else "SELECT 1")
        return "done"

    done: Any = lose_database.apply(headers=headers)
    assert (runs, done.state, done.get()) == ([headers, headers], "SUCCESS", "done")


def test_a_task_that_fails_otherwise_is_not() -> None:
    @app.task(name="tests.divide")
    def divide() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    failed: Any = divide.apply()
    assert failed.state == "FAILURE" and not isinstance(failed.result, Retry)
    assert isinstance(failed.result, DataError)
