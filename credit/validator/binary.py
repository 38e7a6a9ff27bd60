"""Exchanges columns of thousands of rows between NumPy and PostgreSQL, as arrays in PostgreSQL's binary format.

Handling rows one by one would take Python longer than validating them may. So a statement aggregates what it reads into
one array for each column, and takes what it writes as one array for each column; psycopg's adaptation is not used. NaN
stands for NULL in arrays of floats, `NO_TIME` in arrays of times, which are microseconds since 1970.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import psycopg
from django.db import connection
from psycopg import pq
from psycopg.errors import error_from_result
from psycopg.generators import send
from psycopg.waiting import wait

# Type -> its OID, the OID of its array, and the NumPy type of its bytes.
_TYPES: Final[dict[str, tuple[int, int, np.dtype[Any]]]] = {
    "bool": (16, 1000, np.dtype("u1")),
    "int2": (21, 1005, np.dtype(">i2")),
    "int8": (20, 1016, np.dtype(">i8")),
    "float8": (701, 1022, np.dtype(">f8")),
    "timestamptz": (1184, 1185, np.dtype(">i8")),
}
_OF_ARRAY: Final = {array: name for name, (_, array, _) in _TYPES.items()}
_BYTEA: Final = 17
_BYTEA_ARRAY: Final = 1001
_HEADER: Final = struct.Struct(">iiIii")  # dimensions, NULLs or none, type, length, first index
_DONE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
# How often to check for a signal, such as one that ends the process.
_WAIT_SECS: Final = 0.1
# PostgreSQL counts microseconds from 2000.
_YEAR_2000_US: Final = 946_684_800_000_000
NO_TIME: Final = -(2**63)

Column = npt.NDArray[Any]
# The statements that a connection has already prepared.
_prepared: WeakKeyDictionary[psycopg.Connection[Any], set[bytes]] = WeakKeyDictionary()


def encode(values: Sequence[Any] | Column, type_: str, nullable: bool = False) -> bytes:
    """Encode an array parameter. Whatever stands for NULL becomes NULL; ``nullable``: NaN and None do in every type."""
    oid, _, dtype = _TYPES[type_]
    numbers = np.asarray(values, np.float64 if nullable else dtype.newbyteorder("="))
    elements = np.empty(len(numbers), np.dtype([("size", ">i4"), ("value", dtype)]))
    elements["size"] = dtype.itemsize
    missing: Column | None = None
    if type_ == "timestamptz":
        missing = numbers == NO_TIME
        elements["value"] = np.where(missing, 0, numbers - _YEAR_2000_US)
    else:
        if type_ == "float8" or nullable:
            missing = np.isnan(numbers)
        elements["value"] = numbers if missing is None or type_ == "float8" else np.where(missing, 0, numbers)
    if missing is None or not missing.any():
        return _HEADER.pack(1, 0, oid, len(numbers), 1) + elements.tobytes()
    # A NULL is a length of -1 with no data.
    elements["size"][missing] = -1
    octets = elements.view(np.uint8).reshape(len(numbers), elements.dtype.itemsize)
    is_sent = np.ones(octets.shape, bool)
    is_sent[missing, 4:] = False
    return _HEADER.pack(1, 1, oid, len(numbers), 1) + octets[is_sent].tobytes()


def encode_one(value: float, type_: str) -> bytes:
    """Encode a parameter that is a single number or time."""
    if type_ == "timestamptz":
        value = int(value) - _YEAR_2000_US
    return bytes(np.asarray(value, _TYPES[type_][2]).tobytes())


def decode(data: bytes | None, type_: str) -> Column:
    """Decode an array without NULLs into a NumPy array; empty for NULL, which is an aggregate of no rows.

    A time of -infinity becomes `NO_TIME`.
    """
    oid, _, dtype = _TYPES[type_]
    native = dtype.newbyteorder("=")
    if data is None or len(data) < _HEADER.size:  # an empty array has no dimensions
        return np.empty(0, native)
    _, has_nulls, element_oid, count, _ = _HEADER.unpack_from(data)
    if has_nulls or element_oid != oid:
        raise TypeError(
            f"expected an array of {type_} without NULLs, not of type {element_oid} (NULLs: {bool(has_nulls)})"
        )
    numbers = np.frombuffer(data, np.dtype([("size", ">i4"), ("value", dtype)]), count, _HEADER.size)["value"]
    if type_ != "timestamptz":
        return numbers.astype(native)
    times = numbers.astype(native)
    return np.where(times == NO_TIME, NO_TIME, times + _YEAR_2000_US)


def decode_bytes(data: bytes | None) -> list[bytes | None]:
    """Decode an array of bytea or text, including NULLs."""
    if data is None or len(data) < _HEADER.size:
        return []
    count, place = _HEADER.unpack_from(data)[3], _HEADER.size
    values: list[bytes | None] = []
    for _ in range(count):
        size = int.from_bytes(data[place : place + 4], signed=True)
        place += 4
        if size < 0:
            values.append(None)
            continue
        values.append(data[place : place + size])
        place += size
    return values


def _decoded(data: bytes | None, array_oid: int) -> Column | list[bytes | None]:
    return decode_bytes(data) if array_oid == _BYTEA_ARRAY else decode(data, _OF_ARRAY[array_oid])


def _text(name: bytes | None) -> str:
    assert name is not None  # there is such a column
    return name.decode()


class Statement:
    """A statement on Django's own connection, in the current transaction there; prepared at its first use.

    ``types`` are those of its parameters $1, $2, …, separated by blanks: ``int8`` for one value, ``bytea`` for bytes,
    ``int8[]`` for an array, ``int8?[]`` for an array in which NaN or None stands for NULL. Raises psycopg's errors.
    """

    def __init__(self, sql: str, types: str) -> None:
        self.sql = sql.encode()
        self.types = types.split()
        self.name = b"cobblestone_" + hashlib.md5(self.sql + types.encode(), usedforsecurity=False).hexdigest().encode()

    def run(self, *values: Any) -> list[bytes | None]:
        """Run the statement. Returns the columns of its first row, or nothing if there is no row."""
        result = self._result(values)
        return [result.get_value(0, column) for column in range(result.nfields)] if result.ntuples else []

    def read(self, *values: Any) -> dict[str, Any]:
        """Run a statement that returns a row of arrays; return them by the names of the columns."""
        result = self._result(values)
        return {
            _text(result.fname(column)): _decoded(result.get_value(0, column), result.ftype(column))
            for column in range(result.nfields)
        }

    def _result(self, values: Sequence[Any]) -> pq.abc.PGresult:
        raw = self.prepare()
        result = raw.pgconn.exec_prepared(self.name, self._encoded(values), self._formats, pq.Format.BINARY)
        _check(raw, result)
        return result

    def prepare(self) -> psycopg.Connection[Any]:
        """Prepare the statement on the connection if necessary; return the connection."""
        raw: psycopg.Connection[Any] = connection.connection
        if raw.pgconn.transaction_status != pq.TransactionStatus.INTRANS:
            raise RuntimeError("a statement on columns needs an open transaction")
        prepared = _prepared.setdefault(raw, set())
        if self.name not in prepared:
            _check(raw, raw.pgconn.prepare(self.name, self.sql, [_oid(type_) for type_ in self.types]))
            prepared.add(self.name)
        return raw

    def send(self, raw: psycopg.Connection[Any], values: Sequence[Any]) -> None:
        """Send the prepared statement on a connection in pipeline mode, without waiting for its result.

        Everything is flushed: otherwise libpq would hold back what the socket's buffer has no room for, and the server
        could not begin.
        """
        raw.pgconn.send_query_prepared(self.name, self._encoded(values), self._formats, pq.Format.BINARY)
        wait(send(raw.pgconn), raw.pgconn.socket, interval=_WAIT_SECS)

    @property
    def _formats(self) -> list[int]:
        return [pq.Format.BINARY] * len(self.types)

    def _encoded(self, values: Sequence[Any]) -> list[bytes]:
        return [_parameter(value, type_) for value, type_ in zip(values, self.types, strict=True)]


class Write(Statement):
    """A statement that takes rows: ``:rows`` in its text is ``n``, the table of them.

    ``columns``: name and type of each parameter, separated by commas. An array is a column of ``n``; a single value
    appears in the text by its name, as ``:now``.
    """

    def __init__(self, sql: str, columns: str) -> None:
        types = dict(column.split() for column in columns.split(","))
        places = {name: f"${place}" for place, name in enumerate(types, 1)}
        arrays = [name for name, type_ in types.items() if type_.endswith("[]")]
        for name in types.keys() - set(arrays):
            sql = re.sub(rf"(?<!:):{name}\b", places[name], sql)
        rows = f"unnest({', '.join(places[name] for name in arrays)}) n({', '.join(arrays)})"
        super().__init__(sql.replace(":rows", rows), " ".join(types.values()))
        self.columns = tuple(types)

    def in_order(self, **columns: Any) -> list[Any]:
        """Return its parameters in order. Raises TypeError if a column is missing or unexpected, and names it."""
        if odd := columns.keys() ^ set(self.columns):
            raise TypeError(f"columns missing or unexpected: {', '.join(sorted(odd))}")
        return [columns[name] for name in self.columns]


@contextmanager
def pipelined(*statements: Statement) -> Iterator[Callable[..., None]]:
    """Send statements one after the other while the server works on earlier ones: ``send(statement, *values)``.

    Only these statements may be used inside. At the end all are complete, or the first error is raised.
    """
    raw: psycopg.Connection[Any] = connection.connection
    for statement in statements:
        statement.prepare()
    raw.pgconn.enter_pipeline_mode()
    try:
        try:
            yield lambda statement, *values: statement.send(raw, values)
        finally:
            failed = _drain(raw)
    finally:
        raw.pgconn.exit_pipeline_mode()
    if failed is not None:
        raise error_from_result(failed, encoding=raw.info.encoding)


def _drain(raw: psycopg.Connection[Any]) -> pq.abc.PGresult | None:
    """Wait until the server has done everything that was sent; return the first failure."""
    failed: pq.abc.PGresult | None = None
    raw.pgconn.pipeline_sync()
    while True:
        result = raw.pgconn.get_result()
        if result is None:
            continue
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            return failed
        if result.status not in _DONE and failed is None:
            failed = result
            if raw.pgconn.status == pq.ConnStatus.BAD:
                return failed


def _oid(type_: str) -> int:
    if type_ == "bytea":
        return _BYTEA
    name = type_.rstrip("[]?")
    return _TYPES[name][0] if name == type_ else _TYPES[name][1]


def _parameter(value: Any, type_: str) -> bytes:
    if isinstance(value, bytes):
        return value
    name = type_.rstrip("[]?")
    return encode_one(value, name) if name == type_ else encode(value, name, nullable="?" in type_)


def _check(raw: psycopg.Connection[Any], result: pq.abc.PGresult) -> None:
    if result.status not in _DONE:
        raise error_from_result(result, encoding=raw.info.encoding)
