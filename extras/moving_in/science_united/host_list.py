"""Lists of people and computers in CSV, as any account manager can write them, read as if they were a database
(docs/reference/host-list.md).

The lists go into a temporary SQLite database with the tables of Science United, so that the same steps import them.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from extras.moving_in.engine.amounts import KINDS, MAX_AMOUNT
from extras.moving_in.engine.people import BCRYPT
from extras.moving_in.source import Source, Table

MAX_ROWS: Final = 20_000_000
MAX_NUMBER: Final = (1 << 31) - 1
_DAY_SECS: Final = 86_400
_HEX_32: Final = re.compile(r"[0-9a-fA-F]{32}")
_KEYWORDS: Final = re.compile(r"(?:\d{1,6}(?: \d{1,6}){0,299})?")
_ADDRESS: Final = re.compile(r"https?://[^\s<>]{3,246}")


class ListError(Exception):
    """A value that cannot be: the file, the line, the column, and what it may be."""


@dataclass(frozen=True, slots=True)
class Column:
    """``name`` in the file, in the table, and how its text is read; ``default``: of an optional one that is empty."""

    name: str
    target: str
    read: Callable[[str], object]
    default: object = None
    is_optional: bool = False


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text) <= MAX_NUMBER:
        raise ValueError(f"a whole number from 1 to {MAX_NUMBER}")
    return int(text)


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount <= MAX_AMOUNT:
        raise ValueError(f"a number from 0 to {MAX_AMOUNT:.0f}")
    return amount


def _time(text: str) -> float:
    """Unix seconds, or a time with its zone."""
    try:
        return float(text) if text.replace(".", "", 1).isdecimal() else _zoned(text)
    except (ValueError, OverflowError) as error:
        raise ValueError("a time such as 2026-03-01T08:00:00+00:00, or Unix seconds") from error


def _zoned(text: str) -> float:
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment.timestamp()


def _day(text: str) -> float:
    try:
        day = dt.date.fromisoformat(text)
    except ValueError as error:
        raise ValueError("a day such as 2026-03-01") from error
    return dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()


def _switch(text: str) -> int:
    if text not in ("0", "1"):
        raise ValueError("1 or 0")
    return int(text)


def _text(most: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        if len(text) > most:
            raise ValueError(f"{most} characters at most")
        return text

    return read


def _matching(pattern: re.Pattern[str], words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(words)
        return text

    return read


def _optional(name: str, target: str, read: Callable[[str], object], default: object) -> Column:
    return Column(name, target, read, default, is_optional=True)


_KEY: Final = _matching(_HEX_32, "32 hexadecimal digits")
_NUMBERS_OF_KEYWORDS: Final = _matching(_KEYWORDS, "numbers of keywords with spaces between them")
_AMOUNTS: Final = (
    Column("cpu_credit", "cpu_ec", _amount),
    Column("gpu_credit", "gpu_ec", _amount),
    Column("cpu_secs", "cpu_time", _amount),
    Column("gpu_secs", "gpu_time", _amount),
    Column("finished", "njobs_success", _amount),
    Column("failed", "njobs_fail", _amount),
)
_FILES: Final[Mapping[str, tuple[str, Sequence[Column]]]] = {
    "people": (
        "user",
        (
            Column("number", "id", _number),
            Column("email", "email_addr", _text(254)),
            _optional("name", "name", _text(100), ""),
            _optional("password_hash", "passwd_hash", _text(200), ""),
            _optional("password_kind", "password_kind", _text(20), ""),
            _optional("key", "authenticator", _KEY, ""),
            _optional("created", "create_time", _time, 0),
            _optional("confirmed", "email_validated", _switch, 0),
            _optional("status_days", "send_email", _number, 0),
            _optional("keywords_yes", "yes", _NUMBERS_OF_KEYWORDS, ""),
            _optional("keywords_no", "no", _NUMBERS_OF_KEYWORDS, ""),
        ),
    ),
    "projects": (
        "su_project",
        (
            Column("number", "id", _number),
            Column("name", "name", _text(100)),
            Column("url", "url", _matching(_ADDRESS, "an address with http:// or https://, of 255 characters at most")),
            _optional("key", "authenticator", _text(254), ""),
            _optional("signature", "url_signature", _text(2000), ""),
            _optional("share", "share", _amount, 10),
            _optional("is_offered", "is_offered", _switch, 1),
        ),
    ),
    "computers": (
        "host",
        (
            Column("number", "id", _number),
            Column("owner", "userid", _number),
            Column("last_contact", "rpc_time", _time),
            _optional("created", "create_time", _time, 0),
            _optional("name", "domain_name", _text(255), ""),
            _optional("cpid", "host_cpid", _KEY, ""),
            _optional("processors", "p_ncpus", _number, 0),
            _optional("flops", "p_fpops", _amount, 0),
            _optional("vendor", "p_vendor", _text(128), ""),
            _optional("model", "p_model", _text(256), ""),
            _optional("system", "os_name", _text(128), ""),
        ),
    ),
    "totals": (
        "su_host_project",
        (
            Column("computer", "host_id", _number),
            Column("project", "project_id", _number),
            *_AMOUNTS,
            _optional("is_attached", "active", _switch, 1),
            _optional("number_there", "project_host_id", _number, 0),
        ),
    ),
    "days": (
        "su_accounting_user",
        (Column("owner", "user_id", _number), Column("day", "create_time", _day), *_AMOUNTS),
    ),
}
_MORE: Final[Mapping[str, Sequence[str]]] = {
    "user": ("cross_project_id", "show_hosts", "donated", "seti_id", "seti_last_result_time", "global_prefs", "venue"),
    "su_project": ("status", "web_url"),
    "host": ("total_credit",),
    "su_accounting_user": tuple(f"{kind}_{part}" for part in ("delta", "total") for kind in KINDS),
}
"""Columns that the steps read beside those of the lists; 0 in all rows."""
_TEXT_COLUMNS: Final = frozenset({"cross_project_id", "global_prefs", "venue", "web_url"})


class ListSource(Source):
    """The lists of a folder, as the database that they would fill. Raises ListError."""

    def __init__(self, folder: Path) -> None:
        # In a temporary file, which goes with the connection
        self._lists = sqlite3.connect("", check_same_thread=False)
        self._lists.text_factory = bytes
        for name, (table, columns) in _FILES.items():
            self._fill(folder / f"{name}.csv", table, columns)
        self._lists.executescript(
            """
CREATE TABLE su_user_keyword (user_id, keyword_id, yesno);
CREATE INDEX keyword_user ON su_user_keyword (user_id);
CREATE INDEX host_user ON host (userid);
CREATE INDEX accounting_user ON su_accounting_user (user_id)"""
        )
        self._spread()

    def close(self) -> None:
        self._lists.close()

    @cached_property
    def columns(self) -> dict[str, set[str]]:
        found = self._lists.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = [name.decode() for (name,) in found]
        return {name: {row[1].decode() for row in self._lists.execute(f"PRAGMA table_info({name})")} for name in tables}

    def all(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        return list(self._lists.execute(statement.replace("%s", "?"), params))

    def nrows(self, table: Table) -> int:
        return int(self._lists.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])

    def _stream(self, statement: str, params: Sequence[Any]) -> Iterator[Sequence[Any]]:
        yield from self._lists.execute(statement.replace("%s", "?"), params)

    def _fill(self, path: Path, table: str, columns: Sequence[Column]) -> None:
        targets = [column.target for column in columns]
        if "id" not in targets:
            targets = ["id", *targets]
        more = [name for name in _MORE.get(table, ()) if name not in targets]
        defaults = ", ".join(f"{name} DEFAULT {chr(39) * 2 if name in _TEXT_COLUMNS else 0}" for name in more)
        names = ", ".join("id INTEGER PRIMARY KEY" if name == "id" else name for name in targets)
        self._lists.execute(f"CREATE TABLE {table} ({names}{', ' if more else ''}{defaults})")
        if not path.exists():
            return
        own = [column.target for column in columns]
        places = ", ".join("?" for _ in own)
        try:
            self._lists.executemany(f"INSERT INTO {table} ({', '.join(own)}) VALUES ({places})", _rows(path, columns))
        except sqlite3.IntegrityError as error:
            raise ListError(f"{path.name}: a number comes twice ({error})") from error

    def _spread(self) -> None:
        """Into what the lists say in a column, and the tables have in others."""
        deltas = ", ".join(f"{kind}_delta = {kind}" for kind in KINDS)
        self._lists.execute(f"UPDATE su_accounting_user SET {deltas}")
        # A day ends with itself, and does not go on to the next one that has work.
        self._lists.execute(
            f"""
INSERT INTO su_accounting_user (user_id, create_time)
SELECT d.user_id, d.create_time + {_DAY_SECS} FROM su_accounting_user d
 WHERE NOT EXISTS (SELECT 1 FROM su_accounting_user o
                    WHERE o.user_id = d.user_id AND o.create_time = d.create_time + {_DAY_SECS})"""
        )
        zeros = ", ".join(f"{kind}_delta = coalesce({kind}_delta, 0)" for kind in KINDS)
        self._lists.execute(f"UPDATE su_accounting_user SET {zeros}")
        # In the order of their days, as they are in a database
        self._lists.execute("UPDATE su_accounting_user SET id = -id")
        self._lists.execute(
            """
UPDATE su_accounting_user SET id = n.place
  FROM (SELECT id, row_number() OVER (ORDER BY user_id, create_time) AS place FROM su_accounting_user) n
 WHERE n.id = su_accounting_user.id"""
        )
        self._lists.execute("UPDATE su_project SET status = 2 * is_offered")
        for column, sign in (("yes", 1), ("no", -1)):
            for number, words in self._lists.execute(f"SELECT id, {column} FROM user WHERE {column} <> ''").fetchall():
                rows = [(number, int(word), sign) for word in words.split()]
                self._lists.executemany("INSERT INTO su_user_keyword VALUES (?, ?, ?)", rows)


def _rows(path: Path, columns: Sequence[Column]) -> Iterable[list[object]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        known = {column.name for column in columns}
        if unknown := set(reader.fieldnames or ()) - known:
            raise ListError(f"{path.name}: there is no column {sorted(unknown)[0]!r}")
        for column in columns:
            if column.name not in (reader.fieldnames or ()) and not column.is_optional:
                raise ListError(f"{path.name}: the column {column.name!r} is missing")
        try:
            for nrows, row in enumerate(reader):
                if nrows >= MAX_ROWS:
                    raise ListError(f"{path.name}: more than {MAX_ROWS} rows")
                yield [_value(path, reader.line_num, column, row) for column in columns]
        except (csv.Error, UnicodeDecodeError) as error:
            raise ListError(f"{path.name}, line {reader.line_num}: {error}") from error


def _value(path: Path, line: int, column: Column, row: Mapping[str, str | None]) -> object:
    text = (row.get(column.name) or "").strip()
    try:
        if column.name == "password_kind":
            _check_kind(text, (row.get("password_hash") or "").strip())
        if not text and column.is_optional:
            return column.default
        return column.read(text)
    except ValueError as error:
        raise ListError(f"{path.name}, line {line}, {column.name}: {error}") from error


def _check_kind(kind: str, stored: str) -> None:
    fits = {
        "": not stored,
        "md5": _HEX_32.fullmatch(stored) is not None,
        "bcrypt-md5": BCRYPT.fullmatch(stored) is not None,
    }
    if not fits.get(kind, False):
        raise ValueError("bcrypt-md5 or md5, with such a hash; empty without a hash")
