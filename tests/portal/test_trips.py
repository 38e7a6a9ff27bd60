"""Several transactions in one round trip to the database: each is done, or not, by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from django.db import DatabaseError, DataError, OperationalError, connection, transaction

from portal.models import User
from portal.prepared import Prepared, fetch_each, put_back_kept

ADD = Prepared("SELECT %(number)s::integer + 1")
DIVIDE = Prepared("SELECT 6 / %(number)s::integer")
END = Prepared("SELECT pg_terminate_backend(pg_backend_pid()), %(number)s::text")
RENAME = Prepared("UPDATE portal_user SET name = %(number)s::text || 'x'")

Steps = list[tuple[Prepared, Mapping[str, str | None]]]


def of(statement: Prepared, number: int) -> Steps:
    return [(statement, {"number": str(number)})]


@pytest.mark.django_db(transaction=True)
def test_one_that_fails_undoes_no_other() -> None:
    first, failed, third = fetch_each([of(ADD, 1), of(ADD, 2) + of(DIVIDE, 0) + of(ADD, 3), of(DIVIDE, 2)])
    assert (first, third) == ([["2"]], [["3"]])
    assert isinstance(failed, DataError)
    assert "division by zero" in str(failed)


@pytest.mark.django_db(transaction=True)
def test_what_was_done_before_the_connection_was_lost_is_done() -> None:
    first, lost, never_begun = fetch_each([of(ADD, 1), of(END, 0), of(ADD, 2)])
    assert first == [["2"]]
    assert isinstance(lost, OperationalError)
    assert isinstance(never_begun, DatabaseError)
    # The next one has a connection that works.
    assert fetch_each([of(ADD, 3)]) == [[["4"]]]


@pytest.mark.django_db(transaction=True)
def test_this_threads_own_connection_may_be_dead() -> None:
    connection.ensure_connection()
    with connection.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert fetch_each([of(ADD, 1)]) == [[["2"]]]
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_given_back_within_a_transaction_commits_again(alice: User) -> None:
    put_back_kept()
    connection.close()
    pool = cast("Any", connection).pool
    given_back = [pool.getconn() for _ in range(pool.max_size)]
    for raw in given_back:
        raw.autocommit = False
        pool.putconn(raw)
    fetch_each([of(RENAME, 1)])
    alice.refresh_from_db()
    assert alice.name == "1x"
    put_back_kept()


@pytest.mark.django_db
def test_in_a_transaction_it_is_a_part_of_that() -> None:
    with transaction.atomic():
        (failed,) = fetch_each([of(DIVIDE, 0)])
        assert isinstance(failed, DataError)
        assert fetch_each([of(ADD, 1)]) == [[["2"]]]
