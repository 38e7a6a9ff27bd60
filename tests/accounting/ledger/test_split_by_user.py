"""How far the schema is ready to be split by user: what docs/explanation/splitting.md says of each table is true."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from django.db import IntegrityError, connection, transaction

from accounting.models import HostLedger, HostProject, Project
from portal.models import User
from tests.support.accounting_factories import make_host

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
SELECT t.relname, c.confrelid::regclass::text,
       array(SELECT attname::text FROM pg_attribute WHERE attrelid = c.conrelid AND attnum = ANY (c.conkey)),
       array(SELECT attname::text FROM pg_attribute WHERE attrelid = c.confrelid AND attnum = ANY (c.confkey))
  FROM ({_TABLES}) t
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
    assert set(KINDS.values()) == {"distributed", "by user", "reference", "site"}


def test_every_unique_key_of_a_distributed_table_has_the_user() -> None:
    keys = [(table, columns) for table, _, columns in found(_UNIQUE) if KINDS[table] == "distributed"]
    assert {table for table, _ in keys} == of_kind("distributed")
    assert [table for table, columns in keys if "user_id" not in columns] == []


def test_every_table_of_the_ledger_is_distributed() -> None:
    """But for what projects are, and what all volunteers did together."""
    of_computers = {
        table for table, column in found(_COLUMNS) if table.startswith("accounting_") and column == "host_id"
    }
    assert of_computers == {
        f"accounting_{name}"
        for name in (
            "answer", "day", "followedtask", "grantedday", "grantedtotal", "hostclient", "hostledger", "hostproject",
            "month", "note", "settlement", "tasklist",
        )
    }  # fmt: skip
    history = {f"accounting_{name}" for name in ("bestday", "accounttotal", "userproject", "accountsettings")}
    assert of_computers | history <= of_kind("distributed")


def test_a_table_by_user_has_a_key_without_the_user() -> None:
    lacking = {table for table, _, columns in found(_UNIQUE) if not {"user_id", "owner_id"} & set(columns)}
    assert of_kind("by user") - lacking == set()


def test_a_distributed_table_refers_to_reference_tables_or_to_a_computer_with_its_owner() -> None:
    references = [row for row in found(_REFERENCES) if KINDS[row[0]] == "distributed"]
    apart = [row for row in references if KINDS[row[1]] not in ("distributed", "reference")]
    assert {target for _, target, *_ in apart} == {"portal_host"}
    assert [row for row in apart if "user_id" not in row[2] or "owner_id" not in row[3]] == []


@pytest.mark.parametrize("model", [HostLedger, HostProject])
def test_the_database_refuses_rows_of_a_computer_with_another_user(
    model: type[HostLedger | HostProject], alice: User, bob: User, projects: list[Project]
) -> None:
    HostProject.objects.create(host=make_host(alice, "studio"), project=projects[0])
    with pytest.raises(IntegrityError, match="host_id_user_id"), transaction.atomic():
        model._default_manager.update(user=bob)
        connection.check_constraints()


def test_a_row_that_is_saved_without_a_user_gets_the_computers_owner(alice: User, projects: list[Project]) -> None:
    host = make_host(alice, "studio")
    HostProject.objects.bulk_create([HostProject(host=host, project=project) for project in projects])
    assert set(HostProject.objects.values_list("user", flat=True)) == {alice.pk}
    assert HostLedger.objects.get().user == alice


def test_no_table_with_a_user_is_called_a_table_without() -> None:
    """But for the accounts' own, whose users are operators."""
    of_volunteers = {table for table, column in found(_COLUMNS) if column in ("user_id", "host_id")}
    others = of_volunteers & of_kind("reference", "site")
    assert others == {"portal_user_groups", "portal_user_user_permissions"}
