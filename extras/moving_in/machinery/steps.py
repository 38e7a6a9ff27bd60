"""What an import is made of: steps, in an order. Each can be done again and changes nothing then.

A step of rows reads a table in ranges, translates each row by a pure function, copies what it gives into a temporary
table ``moving_rows``, and merges this into our tables, with its progress, in one transaction for each range. Any other
work is a call.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from extras.moving_in.engine.tally import Tally
from extras.moving_in.source import Row, Source, Table

Translated = Sequence[object] | None
"""The values of the step's columns, in their order; None: the row is left, which the tally was told with the reason."""
Translate = Callable[[Row, Tally], Translated]


@dataclass(frozen=True, slots=True)
class Context:
    """Of what the import reads. ``folder``: the project's, where its files are; None: not given."""

    source: Source
    now: dt.datetime
    folder: Path | None = None
    writes: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """A statement over `moving_rows` before the merge, which returns the keys of rows that something is wrong with.

    ``leaves``: it deletes them from there; else it alters them.
    """

    reason: str
    statement: str
    leaves: bool = False


def updated(columns: Iterable[str], row: str = "o") -> str:
    """What DO UPDATE does to a ``row`` that exists: set the columns to the imported values, if any of them differs."""
    names = list(columns)
    ours, brought = (", ".join(f"{each}.{name}" for name in names) for each in (row, "excluded"))
    return f"""SET {", ".join(f"{name} = excluded.{name}" for name in names)}
 WHERE ({ours}) IS DISTINCT FROM ({brought})"""


def refers_to(table: str, key: str, column: str, reason: str, shown: str = "") -> Check:
    """Leaves out rows whose ``column`` matches no ``key`` of our ``table``; they are listed by the column ``shown``."""
    statement = f"""
DELETE FROM moving_rows m
 WHERE m.{column} IS NOT NULL AND NOT EXISTS (SELECT FROM {table} x WHERE x.{key} = m.{column})
RETURNING m.{shown or column}"""
    return Check(reason, statement, leaves=True)


@dataclass(frozen=True, slots=True)
class RowStep:
    """``columns``: of `moving_rows`, with their types in PostgreSQL. The first is a key that tells rows apart.

    ``translator`` makes the function that translates, after reading what this needs to know beforehand; it raises
    `engine.values.BrokenRow` for a row that is left. ``merge``: statements; the rows that the first one writes count
    as changed here. Each has the parameter %(now)s, so that a percent sign is written twice.
    """

    name: str
    table: Table
    columns: Mapping[str, str]
    translator: Callable[[Context], Translate]
    merge: Sequence[str]
    checks: Sequence[Check] = ()


@dataclass(frozen=True, slots=True)
class CallStep:
    """Work that is no table's, such as files. It counts what it does, and writes only if the context says so."""

    name: str
    call: Callable[[Context, Tally], None]


Step = RowStep | CallStep
