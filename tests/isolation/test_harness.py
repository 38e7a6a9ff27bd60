"""The harness itself finds what happens in one order of statements only, and does not hang where a session waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from tests.support.interleavings import Scene, count_steps, orders, run, try_all

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def counter() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE isolation_counter (id integer PRIMARY KEY, n integer)")
        cursor.execute("INSERT INTO isolation_counter VALUES (1, 0), (2, 0)")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE isolation_counter")


def execute(sql: str, *values: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchone()[0] if cursor.description else None


def number(id_: int = 1) -> int:
    found: int = execute("SELECT n FROM isolation_counter WHERE id = %s", id_)
    return found


def add_carelessly() -> None:
    found = number()
    execute("UPDATE isolation_counter SET n = %s WHERE id = 1", found + 1)


def add_under_a_lock() -> None:
    with transaction.atomic():
        found = execute("SELECT n FROM isolation_counter WHERE id = 1 FOR UPDATE")
        execute("UPDATE isolation_counter SET n = %s WHERE id = 1", found + 1)


def update_both(first: int, second: int) -> None:
    with transaction.atomic():
        for id_ in (first, second):
            execute("UPDATE isolation_counter SET n = n + 1 WHERE id = %s", id_)


def scene_of(add: Any, times: int) -> Scene:
    before = number()

    def check(_: list[Any]) -> None:
        assert number() == before + times

    return Scene([add] * times, check)


def test_steps_are_statements_and_commits() -> None:
    # The first step is before the first statement; the second is a look whether the connection still works.
    assert count_steps(add_carelessly) == 4
    assert count_steps(add_under_a_lock) == 5


def test_an_update_that_is_lost_in_one_order_is_found() -> None:
    with pytest.raises(AssertionError, match="in the order"):
        try_all(lambda: scene_of(add_carelessly, 2), most=30)


def test_sessions_that_wait_for_one_another_are_played_to_their_end() -> None:
    assert try_all(lambda: scene_of(add_under_a_lock, 2), most=20) == 20


def test_three_sessions() -> None:
    assert try_all(lambda: scene_of(add_under_a_lock, 3), most=8) == 8


def test_a_deadlock_ends_one_of_the_two() -> None:
    outcomes = run([lambda: update_both(1, 2), lambda: update_both(2, 1)], [0, 0, 1, 1, 0, 1, 0, 1])
    assert sorted(isinstance(outcome, DatabaseError) for outcome in outcomes) == [False, True]


def test_all_orders_are_made_or_as_many_as_are_wanted() -> None:
    assert orders([2, 1], most=10) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert len(set(orders([20, 20], most=50))) == 50
    assert orders([20, 20], most=50) == orders([20, 20], most=50)
