"""A history as a Parquet file, the same columns as in CSV, with types that lose nothing.

Only workers import this module: the library takes 55 MB of memory, which web processes do not need.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from accounting.exchange.day_rows import DayRow, Names, flag_names
from accounting.exchange.downloads import AMOUNTS, COLUMNS

# Credits and seconds: 64 bits of millionths have 19 digits.
_AMOUNT: Final = pa.decimal128(19, 6)
_NAME: Final = pa.dictionary(pa.int32(), pa.string())
_TYPES: Final[dict[str, Any]] = {
    "day": pa.date32(),
    "project_id": pa.int64(),
    "project": _NAME,
    "project_url": _NAME,
    "host_id": pa.int64(),
    "host": _NAME,
    **dict.fromkeys(AMOUNTS[:4], _AMOUNT),
    **dict.fromkeys(AMOUNTS[4:], pa.int64()),
    "flags": pa.list_(pa.string()),
    "granted_credit": _AMOUNT,
}
SCHEMA: Final = pa.schema([(name, _TYPES[name]) for name in COLUMNS])


class _Pieces(io.RawIOBase):
    """What was written since it was last taken; a zip's file cannot tell its place, as the library needs."""

    def __init__(self) -> None:
        self._written = bytearray()
        self._taken = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._written += data
        return len(data)

    def tell(self) -> int:
        return self._taken + len(self._written)

    def take(self) -> bytes:
        piece = bytes(self._written)
        self._taken += len(piece)
        self._written.clear()
        return piece


def as_parquet(pages: Iterable[Sequence[DayRow]], names: Names) -> Iterator[bytes]:
    """The file in pieces; each page is a row group."""
    pieces = _Pieces()
    with parquet.ParquetWriter(pa.PythonFile(pieces, mode="w"), SCHEMA, compression="zstd") as writer:
        for page in pages:
            writer.write_table(pa.table(_columns(page, names), schema=SCHEMA))
            yield pieces.take()
    yield pieces.take()


def _columns(page: Sequence[DayRow], names: Names) -> dict[str, Any]:
    amounts = list(zip(*(row.amounts for row in page), strict=True))
    values: list[list[Any]] = [
        [row.day for row in page],
        [row.project_id for row in page],
        [names.project(row.project_id) for row in page],
        [names.project_url(row.project_id) for row in page],
        [row.host_id for row in page],
        [names.host(row.host_id) for row in page],
        *([Decimal(micro).scaleb(-6) for micro in column] for column in amounts[:4]),
        *(list(column) for column in amounts[4:]),
        [flag_names(row.flags) for row in page],
        [None if (micro := names.granted(row)) is None else Decimal(micro).scaleb(-6) for row in page],
    ]
    return {
        name: pa.array(column, _TYPES[name].value_type).dictionary_encode()
        if _TYPES[name] is _NAME
        else pa.array(column, _TYPES[name])
        for name, column in zip(COLUMNS, values, strict=True)
    }
