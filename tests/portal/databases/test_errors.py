"""Which errors say that the database was lost."""

from __future__ import annotations

import psycopg
import pytest
from django.db import InternalError, OperationalError, connection, transaction
from psycopg_pool import PoolTimeout

from portal.databases.errors import is_database_lost, is_worth_repeating


def test_a_connection_that_cannot_be_made_or_was_ended_is_lost() -> None:
    with pytest.raises(psycopg.OperationalError) as refused:
        psycopg.connect("host=127.0.0.1 port=1 dbname=none")
    assert is_database_lost(refused.value) and is_worth_repeating(refused.value)
    assert is_database_lost(psycopg.errors.AdminShutdown())
    assert is_database_lost(psycopg.errors.ConnectionFailure())
    assert is_database_lost(psycopg.errors.DiskFull()) and not is_worth_repeating(psycopg.errors.DiskFull())
    assert is_database_lost(PoolTimeout()) and not is_worth_repeating(PoolTimeout())


@pytest.mark.django_db(transaction=True)
def test_djangos_errors_tell_it_too() -> None:
    with pytest.raises(OperationalError) as ended, connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    connection.close()
    assert is_database_lost(ended.value)
    with pytest.raises(InternalError) as written, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute("CREATE TABLE not_here ()")
    assert is_database_lost(written.value)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "statement", ["SELECT 1 / 0", "SELECT nothing", "SET lock_timeout = '1ms'; SELECT pg_sleep('x')"]
)
def test_a_wrong_statement_is_no_loss(statement: str) -> None:
    with pytest.raises(Exception) as wrong, connection.cursor() as cursor:  # of several kinds
        cursor.execute(statement)
    assert not is_database_lost(wrong.value)


def test_what_is_no_error_of_the_database_is_no_loss() -> None:
    assert not is_database_lost(ConnectionResetError("connection"))
