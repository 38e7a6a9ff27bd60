"""The statements of a pass, whose columns are found by their names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction

from credit.engine.explanation import Explanation
from credit.models import App, AppVersion
from credit.validator import reads, sql
from credit.validator.binary import Statement
from portal.models import Host
from tests.support.validator_runs import done, validate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_functions")]


def read(app: App, host: Host, version: AppVersion) -> dict[str, list[Any]]:
    """All that a pass reads in columns, by table and column."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        workunits = reads.lock_workunits(app.pk, 10, 2**52)
        results = reads.read_results(workunits.id)
        one = np.array([1], np.int64)
        records = reads.lock_records(app.pk, one * host.pk, one * version.pk, one)
        users, (hosts, p_fpops) = reads.lock_users(results.user_id), reads.lock_hosts(results.host_id)
    tables: dict[str, Any] = {
        "workunits": workunits,
        "results": results,
        "records": records,
        "users": users,
        "hosts": hosts,
    }
    columns = {
        f"{table}.{field.name}": getattr(its, field.name) for table, its in tables.items() for field in fields(its)
    }
    return {name: list(map(repr, column)) for name, column in columns.items()} | {"p_fpops": list(map(repr, p_fpops))}


def changed(statement: Statement, change: Any) -> Statement:
    """Its list of columns is changed."""
    head, aggregate, rest = statement.sql.decode().partition("SELECT array_agg")
    columns, name, tail = (aggregate + rest).partition("\n  FROM ")
    return Statement(head + change(columns) + name + tail, " ".join(statement.types))


def first_to_the_end(columns: str) -> str:
    first, _, others = columns.removeprefix("SELECT ").partition(", ")
    return f"SELECT {others}, {first}"


STATEMENTS = ["LOCK_WORKUNITS", "READ_RESULTS", "LOCK_RECORDS", "LOCK_USERS", "LOCK_HOSTS"]


@pytest.fixture
def waiting(app: App, version: AppVersion, hosts: list[Host]) -> None:
    """Results that wait, of computers that have records."""
    done(app, version, *hosts[:2])
    validate(app)
    done(app, version, *hosts[:2])


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_order_of_columns_does_not_matter(
    waiting: None, app: App, version: AppVersion, hosts: list[Host], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = read(app, hosts[0], version)
    assert all(before.values())
    monkeypatch.setattr(sql, name, changed(getattr(sql, name), first_to_the_end))
    assert read(app, hosts[0], version) == before


@pytest.mark.parametrize("name", STATEMENTS[:-1])
def test_a_column_too_many_is_an_error_that_names_it(
    waiting: None, app: App, version: AppVersion, hosts: list[Host], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with_another = changed(getattr(sql, name), lambda columns: f"{columns}, ARRAY[0::int8] AS added")
    monkeypatch.setattr(sql, name, with_another)
    with pytest.raises(TypeError, match="'added'"):
        read(app, hosts[0], version)


def test_all_of_an_explanation_is_written_but_what_only_its_sentences_need() -> None:
    assert {field.name for field in fields(Explanation)} - set(sql.UPDATE_RESULTS.columns) == {
        "elapsed_secs",
        "fails_often",
        "room_jobs",
    }
