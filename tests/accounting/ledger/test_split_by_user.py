"""How far the schema is ready to be split by user: what docs/explanation/splitting.md says of each table is true."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db

_DOCUMENT: Final = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "splitting.md"
_ROW: Final = re.compile(r"^\| `(\w+)` \| ([a-z ]+) \| (.+) \|$", re.M)
DECLARED: Final = [(table, kind) for table, kind, _ in _ROW.findall(_DOCUMENT.read_text())]
KINDS: Final = dict(DECLARED)
_TABLES: Final = """
SELECT c.oid, c.relname FROM pg_class c
 WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND c.relname ~ '^(accounting|portal)_'"""
_COLUMNS: Final = f"""
SELECT t.relname, a.attname FROM ({_TABLES}) t JOIN pg_attribute a ON a.attrelid = t.oid
 WHERE a.attnum > 0 AND NOT a.attisdropped"""
# The columns of each primary key and of each other unique key, those without a constraint included.
_UNIQUE: Final = f"""
SELECT t.relname, i.indexrelid::regclass::text, array_agg(a.attname::text)
  FROM ({_TABLES}) t JOIN pg_index i ON i.indrelid = t.oid AND i.indisunique
  JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (i.indkey::int2[])
 GROUP BY 1, 2"""
_REFERENCES: Final = f"""
SELECT t.relname, c.confrelid::regclass::text FROM ({_TABLES}) t
  JOIN pg_constraint c ON c.conrelid = t.oid AND c.contype = 'f'"""


def found(sql: str) -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def of_kind(*kinds: str) -> set[str]:
    return {table for table, kind in DECLARED if kind in kinds}


def test_every_table_is_listed_once() -> None:
    assert {table for _, table in found(_TABLES)} == set(KINDS)
    assert [table for table, number in Counter(table for table, _ in DECLARED).items() if number > 1] == []
    assert set(KINDS.values()) == {"distributed", "by host", "by user", "reference", "site"}


def test_every_unique_key_of_a_distributed_table_has_the_user() -> None:
    keys = [(table, columns) for table, _, columns in found(_UNIQUE) if KINDS[table] == "distributed"]
    assert {table for table, _ in keys} == of_kind("distributed")
    assert [table for table, columns in keys if "user_id" not in columns] == []


def test_the_history_and_its_sums_are_distributed() -> None:
    history = {"accounting_day", "accounting_grantedday", "accounting_month", "accounting_bestday"}
    assert history <= of_kind("distributed")


def test_a_table_by_host_has_the_computer_and_not_the_user() -> None:
    columns = set(found(_COLUMNS))
    assert [table for table in of_kind("by host") if (table, "host_id") not in columns] == []
    assert [table for table in of_kind("by host") if (table, "user_id") in columns] == []


def test_a_table_by_user_has_a_key_without_the_user() -> None:
    lacking = {table for table, _, columns in found(_UNIQUE) if not {"user_id", "owner_id"} & set(columns)}
    assert of_kind("by user") - lacking == set()


def test_a_distributed_table_refers_to_reference_tables_alone() -> None:
    targets = {target for table, target in found(_REFERENCES) if KINDS[table] == "distributed"}
    assert targets <= of_kind("distributed", "reference")


def test_no_table_with_a_user_is_called_a_table_without() -> None:
    """But for the accounts' own, whose users are operators."""
    of_volunteers = {table for table, column in found(_COLUMNS) if column in ("user_id", "host_id")}
    others = of_volunteers & of_kind("reference", "site")
    assert others == {"portal_user_groups", "portal_user_user_permissions"}
