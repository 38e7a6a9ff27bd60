"""Exchange of columns between NumPy and PostgreSQL in its binary format."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from django.db import connection, transaction
from psycopg import errors

from credit.validator.binary import NO_TIME, Statement, Write, decode, decode_bytes, pipelined

pytestmark = pytest.mark.django_db

NOON_US = int(dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()) * 1_000_000


def run(sql: str, types: str, *values: object) -> list[bytes | None]:
    with transaction.atomic():
        begin()
        return Statement(sql, types).run(*values)


def begin() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("int8", [1, -(2**62), 0]),
        ("int2", [7, -7]),
        ("float8", [0.1, -1e304, 5e-324]),
        ("bool", [True, False]),
        ("timestamptz", [NOON_US, 0, -1]),
        ("int8", []),
    ],
)
def test_numbers_come_back_as_they_went(type_: str, values: list[float]) -> None:
    (column,) = run("SELECT $1", f"{type_}[]", values)
    assert decode(column, type_).tolist() == values


def test_nan_and_none_become_null_where_they_may() -> None:
    def asked(type_: str, values: object) -> list[int]:
        (column,) = run(
            "SELECT array_agg((CASE WHEN x IS NULL THEN 1 ELSE 0 END)::int8) FROM unnest($1) x", type_, values
        )
        return list(decode(column, "int8"))

    assert asked("float8[]", [1.0, None, float("nan")]) == [0, 1, 1]
    assert asked("int8?[]", [1, None, 3]) == [0, 1, 0]
    assert asked("int2?[]", [None]) == [1]
    assert asked("bool?[]", [True, None]) == [0, 1]
    assert asked("timestamptz[]", [NO_TIME, NOON_US]) == [1, 0]


def test_times_are_the_same_moments_for_postgresql() -> None:
    (column,) = run("SELECT array_agg(extract(epoch FROM x)::float8) FROM unnest($1) x", "timestamptz[]", [NOON_US])
    assert decode(column, "float8").tolist() == [NOON_US / 1e6]
    (column,) = run("SELECT ARRAY[$1, '-infinity']", "timestamptz", NOON_US)
    assert decode(column, "timestamptz").tolist() == [NOON_US, NO_TIME]


def test_bytes_come_with_their_nulls() -> None:
    (column,) = run("SELECT ARRAY['\\x00ff'::bytea, NULL, '']", "")
    assert decode_bytes(column) == [b"\x00\xff", None, b""]


def test_no_rows_are_an_empty_column() -> None:
    (column,) = run("SELECT array_agg(x) FROM unnest($1) x", "int8[]", np.empty(0, np.int64))
    assert decode(column, "int8").tolist() == []


def test_a_column_of_another_type_or_with_nulls_is_refused() -> None:
    (column,) = run("SELECT ARRAY[1.5::float8, NULL]", "")
    with pytest.raises(TypeError, match="without NULLs"):
        decode(column, "float8")
    with pytest.raises(TypeError, match="int8"):
        decode(run("SELECT ARRAY[1.5::float8]", "")[0], "int8")


def test_a_statement_raises_what_goes_wrong() -> None:
    with pytest.raises(errors.DivisionByZero):
        run("SELECT 1 / $1", "int8", 0)
    assert run("SELECT ARRAY[5::int8]", "") != []


def test_rows_are_written_by_the_names_of_their_columns() -> None:
    write = Write("SELECT array_agg(n.tens + n.ones + :more::int8) FROM :rows", "ones int8[], more int8, tens int8?[]")
    with transaction.atomic():
        begin()
        (column,) = write.run(*write.in_order(tens=[10, 20], ones=[1, 2], more=100))
    assert decode(column, "int8").tolist() == [111, 122]
    for columns in ({"ones": [1], "tens": [10]}, {"ones": [1], "tens": [10], "more": 1, "added": [1]}):
        with pytest.raises(TypeError, match="more" if len(columns) == 2 else "added"):
            write.in_order(**columns)


@pytest.mark.django_db(transaction=True)
def test_a_statement_wants_a_transaction_that_has_begun() -> None:
    begin()
    with pytest.raises(RuntimeError, match="transaction"):
        Statement("SELECT 5::int8", "").run()


def test_queued_statements_all_happen_or_raise_the_first_error() -> None:
    insert = Statement("INSERT INTO portal_session (session_key, session_data, expire_date) "
                       "SELECT 'k' || x, '', now() FROM unnest($1) x", "int8[]")  # fmt: skip
    with transaction.atomic():
        begin()
        with pipelined(insert) as send:
            for numbers in ([1, 2], [3], []):
                send(insert, numbers)
    (count,) = run("SELECT ARRAY[count(*)] FROM portal_session", "")
    assert decode(count, "int8").tolist() == [3]
    with pytest.raises(errors.UniqueViolation), transaction.atomic():
        begin()
        with pipelined(insert) as send:
            for numbers in ([4], [1], [5]):
                send(insert, numbers)
    (count,) = run("SELECT ARRAY[count(*)] FROM portal_session", "")
    assert decode(count, "int8").tolist() == [3]


def test_what_is_queued_has_left_this_process_before_the_caller_goes_on() -> None:
    """So the server works meanwhile; what a socket's buffer has no room for would wait for the next statement."""
    count = Statement("SELECT count(*) FROM unnest($1)", "int8[]")
    with transaction.atomic():
        begin()
        with pipelined(count) as send:
            send(count, np.zeros(1_000_000, np.int64))
            assert connection.connection.pgconn.flush() == 0


def test_an_error_of_the_caller_leaves_the_connection_usable() -> None:
    statement = Statement("SELECT $1", "int8")
    with pytest.raises(KeyError), transaction.atomic():
        begin()
        with pipelined(statement) as send:
            send(statement, 1)
            raise KeyError
    assert run("SELECT ARRAY[6::int8]", "") != []
