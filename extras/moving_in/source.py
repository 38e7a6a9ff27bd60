"""Reads the MySQL or MariaDB database of another site: never writes, and takes its texts as the bytes that they are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.cursors import SSCursor

Row = dict[str, Any]
"""Texts are bytes (`engine.texts.read`), numbers are numbers."""

READ_SECS: Final = 600
_COLUMNS: Final = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = database()"
_NEWEST: Final = """
SELECT unix_timestamp(max(n.at))
  FROM (SELECT t.`{column}` AS at FROM `{name}` AS t ORDER BY t.`{key}` DESC LIMIT 10000) n"""
_ALLOWANCE_SECS: Final = 3600
_BOUND: Final = "SELECT {key} FROM {table} AS t WHERE {key} > %s ORDER BY {key} LIMIT 1 OFFSET %s"


@dataclass(frozen=True, slots=True)
class Table:
    """What is read of a table, in the order of an integer column.

    ``columns``: by name, with what stands for one that the site's version of the table does not have. ``more``: by
    name, an expression of SQL over ``t``, which is this table, and over what ``join`` adds, one row at most for each
    row. ``where``: which rows. ``changed_at``: a column with the time of a row's last change, by which a later import
    reads only what changed since.
    """

    name: str
    columns: Mapping[str, Any]
    key: str = "id"
    more: Mapping[str, str] = field(default_factory=dict)
    join: str = ""
    where: str = ""
    changed_at: str = ""


class Source:
    """A connection to the database. Times are UTC."""

    def __init__(self, database: str, defaults_file: Path | None = None, **more: Any) -> None:
        # Results in the characters of no set, so that the server converts nothing.
        self._connection = pymysql.connect(
            database=database,
            charset="utf8mb4",
            use_unicode=False,
            init_command="SET character_set_results = NULL, time_zone = '+00:00'",
            read_timeout=READ_SECS,
            autocommit=True,
            read_default_file=str(defaults_file) if defaults_file is not None else None,
            **more,
        )
        with self._connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION READ ONLY")

    def close(self) -> None:
        self._connection.close()

    @cached_property
    def columns(self) -> dict[str, set[str]]:
        """The columns of each table."""
        found: dict[str, set[str]] = {}
        for table, column in self.all(_COLUMNS):
            found.setdefault(table.decode(), set()).add(column.decode())
        return found

    def all(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement whose answer is short."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, params)
            return list(cursor.fetchall())

    def has(self, table: str, *columns: str) -> bool:
        return set(columns) <= self.columns.get(table, set()) and table in self.columns

    def nrows(self, table: Table) -> int:
        """About how many rows the table has."""
        found = self.all(
            "SELECT table_rows FROM information_schema.tables WHERE table_schema = database() AND table_name = %s",
            table.name,
        )
        return int(found[0][0] or 0) if found else 0

    def nbelow(self, table: Table) -> int:
        """How many rows have a key that cannot be one here: 0 or less."""
        where = f" AND ({table.where})" if table.where else ""
        return int(self.all(f"SELECT count(*) FROM `{table.name}` AS t WHERE t.`{table.key}` <= 0{where}")[0][0])

    def as_of(self, tables: Iterable[Table]) -> dt.datetime | None:
        """When the newest rows were changed, but no later than the server's clock; None if that is not known.

        Whatever changes after this is read has a later time, even in a copy or in a replica that lags behind. The
        allowance makes this true of what an open transaction has changed, too.
        """
        newest = [
            self.all(_NEWEST.format(name=table.name, column=table.changed_at, key=table.key))[0][0]
            for table in tables
            if table.changed_at and self.has(table.name, table.changed_at)
        ]
        known = [int(secs) for secs in newest if secs]
        if not known:
            return None
        ((now,),) = self.all("SELECT unix_timestamp()")
        return dt.datetime.fromtimestamp(min(max(known), int(now)) - _ALLOWANCE_SECS, dt.UTC)

    def bound(self, table: Table, above: int, nrows: int) -> int | None:
        """The key of the last of the ``nrows`` rows that follow the key ``above``; None if fewer follow."""
        statement = _BOUND.format(key=f"t.`{table.key}`", table=f"`{table.name}`")
        found = self.all(statement, above, nrows - 1)
        return int(found[0][0]) if found else None

    def rows(self, table: Table, above: int, up_to: int | None, since: str = "") -> Iterator[Row]:
        """The rows with keys in this range, as they come. ``since``: changed since this time, "2026-03-01 08:00:00"."""
        statement, names, defaults = self._select(table)
        params: list[Any] = [above]
        if up_to is not None:
            statement += f" AND t.`{table.key}` <= %s"
            params.append(up_to)
        if since and table.changed_at in self.columns[table.name]:
            statement += f" AND t.`{table.changed_at}` >= %s"
            params.append(since)
        if table.where:
            statement += f" AND ({table.where})"
        for values in self._stream(f"{statement} ORDER BY t.`{table.key}`", params):
            row = dict(zip(names, values, strict=True))
            row.update(defaults)
            yield row

    def _stream(self, statement: str, params: Sequence[Any]) -> Iterator[Sequence[Any]]:
        with closing(SSCursor(self._connection)) as cursor:
            cursor.execute(statement, params)
            yield from cursor

    def _select(self, table: Table) -> tuple[str, list[str], Row]:
        there = self.columns[table.name]
        names = [name for name in dict.fromkeys([table.key, *table.columns]) if name in there]
        defaults = {name: value for name, value in table.columns.items() if name not in there}
        expressions = [f"t.`{name}`" for name in names] + list(table.more.values())
        statement = f"SELECT {', '.join(expressions)} FROM `{table.name}` AS t {table.join} WHERE t.`{table.key}` > %s"
        return statement, [*names, *table.more], defaults
