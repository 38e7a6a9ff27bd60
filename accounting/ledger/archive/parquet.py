"""A file with some volunteers' days of a month: Parquet, in the order of their numbers, days, projects, computers.

Each row group says of which volunteers it has days, so those of one are found without reading the others. Imported only
where such a file is written or read: the library takes 55 MB of memory.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from accounting.engine.amounts import KINDS

COLUMNS: Final = ("user_id", "day", "project_id", "host_id", *KINDS, "flags")
ROW_GROUP_ROWS: Final = 2_000
"""About 50 kB."""
_TYPES: Final = {"day": pa.date32(), "flags": pa.int16()}
SCHEMA: Final = pa.schema([(name, _TYPES.get(name, pa.int64())) for name in COLUMNS])

Row = tuple[Any, ...]
"""The values of COLUMNS."""


def table_of(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [() for _ in COLUMNS]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def as_file(rows: Sequence[Row]) -> bytes:
    """The rows, which are in order, as a file; checked by reading it again."""
    table = table_of(rows)
    target = io.BytesIO()
    parquet.write_table(
        table, target, row_group_size=ROW_GROUP_ROWS, compression="zstd", write_statistics=["user_id", "day"]
    )
    written = target.getvalue()
    if not parquet.read_table(io.BytesIO(written)).equals(table):
        raise ValueError("the file would not have the same rows")
    return written


def read_rows(file: IO[bytes], users: Collection[int] | None = None) -> Iterator[Row]:
    """The rows of these volunteers, or of all, in order; one row group is in memory at a time."""
    source = parquet.ParquetFile(file)
    if not source.schema_arrow.equals(SCHEMA):
        raise ValueError("the columns are not those of archived days")
    wanted = None if users is None else pa.array(sorted(users), pa.int64())
    for number in range(source.num_row_groups):
        if users is not None and not _may_have(source.metadata.row_group(number).column(0).statistics, users):
            continue
        table = source.read_row_group(number)
        if wanted is not None:
            table = table.filter(pc.is_in(table.column("user_id"), value_set=wanted))
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def _may_have(statistics: Any, users: Collection[int]) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    return any(statistics.min <= user <= statistics.max for user in users)
