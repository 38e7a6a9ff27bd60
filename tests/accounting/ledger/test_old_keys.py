"""Giving a site with rows keys with the user, while the version before writes; and the end of the keys without."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import StringIO
from threading import Event
from types import SimpleNamespace
from typing import Any, Final

import psycopg
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from accounting.ledger import check, old_keys
from accounting.ledger.old_keys import _PRIMARY, _UNIQUE, OF_HOSTS, SUFFIX
from accounting.models import GrantedTotal, HostClient, HostLedger, HostProject, Note, Project
from portal.databases import short_waits
from portal.models import Host, User
from portal.upgrades import altering
from tests.support.accounting_factories import make_host
from tests.support.am_rpc import HOUR, START, call, credited, host_of, make_computer, work
from tests.support.lock_waits import nwaiting_for_locks
from tests.support.site_process import database_url
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

OLD_KEYS: Final = {
    "accounting_hostledger_pkey": "PRIMARY KEY (host_id)",
    "accounting_hostproject_pkey": "PRIMARY KEY (host_id, project_id)",
    "accounting_answer_pkey": "PRIMARY KEY (host_id, slot)",
    "accounting_tasklist_pkey": "PRIMARY KEY (host_id)",
    "hostclient_host_cpid": "UNIQUE (host_id, cpid)",
    "note_once_a_day": "UNIQUE NULLS NOT DISTINCT (host_id, day, kind, project_id, detail)",
    "settlement_once": "UNIQUE (host_id, project_id)",
    "followedtask_once": "UNIQUE (host_id, project_id, name)",
    "grantedtotal_once": "UNIQUE (project_id, project_host_id)",
    "accounttotal_once": "UNIQUE (project_id, project_user_id)",
}
TABLES: Final = [f"accounting_{name}" for name in _PRIMARY]
SCHEMA: Final = """
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = ANY (%(tables)s::regclass[])
 UNION
SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
 WHERE conrelid = ANY (%(tables)s::regclass[])
 UNION
SELECT attrelid::regclass || ' ' || attname || ' ' || attnotnull FROM pg_attribute
 WHERE attrelid = ANY (%(tables)s::regclass[]) AND attnum > 0 AND NOT attisdropped
 UNION
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = ANY (%(tables)s::regclass[]) AND NOT tgisinternal
 UNION
SELECT proname FROM pg_proc WHERE proname LIKE 'accounting%%'
"""
# As the version before writes them.
OLD_PROJECT: Final = """
INSERT INTO accounting_hostproject AS p (host_id, project_id, credited, pending, dropped, earlier, listed, state,
       suspended, told_suspended, no_new_work, excluded, no_rsc, update_asked, drop_waiting)
VALUES (%s, %s, '{0,0,0,0,0,0}', '{0,0,0,0,0,0}', '{0,0,0,0,0,0}', '{}', true, '{}', false, false, false, false, '{}',
        false, false)
ON CONFLICT (host_id, project_id) DO UPDATE SET listed = NOT p.listed
"""
OLD_NOTE: Final = """
INSERT INTO accounting_note AS o (host_id, project_id, day, kind, detail, amount, count, first_at, last_at)
VALUES (%s, NULL, '2024-03-01', 'reset', '', 0, 1, now(), now())
ON CONFLICT (host_id, day, kind, project_id, detail) DO UPDATE SET count = o.count + 1
"""
OLD_TOTAL: Final = """
INSERT INTO accounting_grantedtotal AS kept (project_id, project_host_id, host_id, total_credit, highest_credit,
       counted_credit, avg_credit, avg_at, made_at, as_of, fits_since)
VALUES (%s, %s, %s, 1, 1, 0, 0, now(), now(), now(), now())
ON CONFLICT (project_id, project_host_id) DO UPDATE SET host_id = excluded.host_id
"""
OLD_CLIENT: Final = "INSERT INTO accounting_hostclient (host_id, cpid, books, seen_at) VALUES (%s, 'c', '{}', now())"
UNCHANGING: Final = ("SELECT", "LOCK TABLE")


def execute(statement: str, *values: str | int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall()) if cursor.description else []


def schema() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(SCHEMA, {"tables": TABLES})
        return {line for (line,) in cursor.fetchall()}


def as_before() -> None:
    """The tables as the version before made them."""
    for name in _PRIMARY:
        table = f"accounting_{name}"
        if name in OF_HOSTS:
            execute(f"ALTER TABLE {table} DROP COLUMN user_id CASCADE")
            execute(f"ALTER TABLE {table} ADD CONSTRAINT {name}_host FOREIGN KEY (host_id) REFERENCES portal_host (id)")
        else:
            execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")
        execute(f"ALTER TABLE {table} ADD CONSTRAINT {table}_pkey {OLD_KEYS.get(f'{table}_pkey', 'PRIMARY KEY (id)')}")
        if name in _UNIQUE:
            key = _UNIQUE[name]
            execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {key}")
            execute(f"ALTER TABLE {table} ADD CONSTRAINT {key} {OLD_KEYS[key]}")
    execute(
        "ALTER TABLE accounting_hostclient ADD CONSTRAINT its_record FOREIGN KEY (record_id) REFERENCES portal_host"
    )
    execute("ALTER TABLE portal_host DROP CONSTRAINT host_id_owner")


def step(module: str, *names: str) -> None:
    migration = import_module(f"accounting.migrations.{module}")
    with connection.schema_editor(atomic=False) as editor:
        for name in names:
            getattr(migration, name)(apps, editor)


def portal_step(module: str) -> None:
    with connection.schema_editor(atomic=False) as editor:
        for operation in import_module(f"portal.migrations.{module}").Migration.operations:
            operation.database_forwards("portal", editor, ProjectState(), ProjectState())


def make_keys() -> None:
    step("0044_keys_with_user", "make_keys", "demand_users", "refer_to_owners")


@pytest.fixture
def old(alice: User, bob: User, projects: list[Project], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Host]]:
    """Computers of two volunteers in tables of the version before, which have to be as they are now at the end."""
    monkeypatch.setattr(import_module("accounting.migrations.0043_fill_user_of_rows"), "BATCH_HOSTS", 2)
    sound = schema()
    hosts = [make_host(owner, f"node-{number}") for number, owner in enumerate([alice, alice, bob, alice, bob])]
    as_before()
    for host in hosts[:3]:
        execute(OLD_PROJECT, host.pk, projects[0].pk)
        execute(OLD_NOTE, host.pk)
    execute(OLD_TOTAL, projects[0].pk, 7, hosts[0].pk)
    portal_step("0030_host_and_owner")
    # As after a run that ended before it was noted.
    portal_step("0030_host_and_owner")
    portal_step("0031_host_and_owner_unique")
    try:
        yield hosts
    finally:
        call_command("drop_old_keys", stdout=StringIO())
    assert schema() == sound


@pytest.fixture
def upgraded(old: list[Host], projects: list[Project]) -> list[Host]:
    """Their rows were there before, or came while the keys were made."""
    step("0042_user_of_rows", "add_columns")
    execute(OLD_PROJECT, old[3].pk, projects[0].pk)
    step("0043_fill_user_of_rows", "fill")
    execute(OLD_PROJECT, old[4].pk, projects[0].pk)
    make_keys()
    return old


class Killed(Exception):
    """The process ends before its next statement."""


def killed_before_each(change: Callable[[], object], meanwhile: Callable[[], object]) -> int:
    """Do it again and again, each time killed before the first statement that it has not come to yet; how often."""
    reached: set[str] = set()

    def run(execute: Any, statement: str, values: Any, many: bool, context: Any) -> Any:
        if not statement.lstrip().startswith(UNCHANGING) and (key := f"{statement} {values}") not in reached:
            reached.add(key)
            raise Killed
        return execute(statement, values, many, context)

    while True:
        try:
            with connection.execute_wrapper(run):
                change()
            return len(reached)
        except Killed:
            meanwhile()


def test_all_rows_have_the_owner_of_their_computer(upgraded: list[Host]) -> None:
    found = {row.host_id: row.user_id for row in HostProject.objects.all()}
    assert found == {host.pk: host.owner_id for host in upgraded}
    assert {row.host_id: row.user_id for row in Note.objects.all()} == {host.pk: host.owner_id for host in upgraded[:3]}


def test_both_versions_write_the_same_rows_until_the_old_keys_go(upgraded: list[Host], projects: list[Project]) -> None:
    computer = make_computer(User.objects.get(pk=upgraded[0].owner_id))
    call(computer, START)
    work(computer, projects[0], 5)
    call(computer, START + 10 * HOUR)
    host = host_of(computer)
    for _ in range(2):
        execute(OLD_PROJECT, host.pk, projects[0].pk)
        execute(OLD_NOTE, host.pk)
    assert Note.objects.get(host=host, kind="reset").count == 2
    work(computer, projects[0], 5)
    call(computer, START + 20 * HOUR)
    assert HostProject.objects.filter(host=host, project=projects[0]).count() == 1
    assert HostLedger.objects.get(host=host).contacts == 3


def test_a_record_that_the_old_version_gives_to_another_volunteer_has_the_new_owner(
    upgraded: list[Host], projects: list[Project]
) -> None:
    execute(OLD_TOTAL, projects[0].pk, 7, upgraded[2].pk)
    row = GrantedTotal.objects.get()
    assert (row.host_id, row.user_id) == (upgraded[2].pk, upgraded[2].owner_id)


def test_making_the_keys_again_changes_nothing_and_an_unfinished_one_is_made_anew(upgraded: list[Host]) -> None:
    before = schema()
    key = f"note_once_a_day{SUFFIX}"
    execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", key)
    make_keys()
    assert schema() == before
    assert execute("SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass", key) == [(True,)]


def test_a_site_with_accounts_keeps_the_old_keys_until_the_command(upgraded: list[Host]) -> None:
    before = schema()
    step("0045_old_keys", "drop_if_new")
    assert schema() == before
    out = StringIO()
    call_command("drop_old_keys", stdout=out)
    call_command("drop_old_keys", stdout=out)
    assert out.getvalue() == "17 old keys were dropped.\nThere are no old keys.\n"


def test_the_command_gives_up_a_table_that_others_hold(upgraded: list[Host], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_waits, "ATTEMPTS", 2)
    monkeypatch.setattr(short_waits, "PAUSE_SECS", 0.0)
    with psycopg.connect(database_url()) as other:
        other.execute("LOCK TABLE accounting_hostledger IN ACCESS SHARE MODE")
        with pytest.raises(CommandError, match="Run it again"):
            call_command("drop_old_keys", stdout=StringIO())


def test_a_migration_that_is_killed_anywhere_goes_on_when_it_is_run_again(
    old: list[Host], projects: list[Project]
) -> None:
    def go_on() -> None:
        """The old version."""
        for host in old:
            execute(OLD_PROJECT, host.pk, projects[0].pk)

    for change in (
        lambda: step("0042_user_of_rows", "add_columns"),
        lambda: step("0043_fill_user_of_rows", "fill"),
        make_keys,
    ):
        assert killed_before_each(change, go_on) > 17
    assert {row.host_id: row.user_id for row in HostProject.objects.all()} == {host.pk: host.owner_id for host in old}


def test_dropping_the_keys_that_is_killed_anywhere_goes_on_while_computers_report(
    upgraded: list[Host], projects: list[Project]
) -> None:
    computer = make_computer(User.objects.get(pk=upgraded[0].owner_id))
    call(computer, START)
    hours = itertools.count(1)

    def report() -> None:
        work(computer, projects[0], 0.5)
        call(computer, START + next(hours) * HOUR)

    nkilled = killed_before_each(old_keys.drop_old_keys, report)
    # The keys, two triggers of each table at most, and the function.
    assert nkilled == 17 + 2 * len(_PRIMARY) + 1
    assert HostLedger.objects.get(host=host_of(computer)).contacts == 1 + nkilled
    assert credited(computer, projects[0])[2] > 0
    assert list(check.differences()) == []


def test_computers_report_while_the_keys_are_dropped(upgraded: list[Host], projects: list[Project]) -> None:
    computer = make_computer(User.objects.get(pk=upgraded[0].owner_id))
    call(computer, START)
    has_begun, is_over = Event(), Event()

    def report() -> int:
        number = 0
        try:
            while number == 0 or not is_over.is_set():
                number += 1
                work(computer, projects[0], 0.5)
                call(computer, START + number * HOUR)
                has_begun.set()
        finally:
            has_begun.set()
            connection.close()
        return number

    with ThreadPoolExecutor(1) as pool:
        reporting = pool.submit(report)
        has_begun.wait()
        assert old_keys.drop_old_keys() == 17
        is_over.set()
        number = reporting.result()
    assert HostLedger.objects.get(host=host_of(computer)).contacts == 1 + number
    assert list(check.differences()) == []


def test_two_runs_at_once_drop_each_key_once(upgraded: list[Host]) -> None:
    def drop() -> int:
        try:
            return old_keys.drop_old_keys()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            altering.hold("accounting_hostledger")
            other = pool.submit(drop)
            wait_until(lambda: other.done() or nwaiting_for_locks(), "the other one to wait", 30, 0.02)
            mine: set[str] = set()
            old_keys._drop("hostledger", mine)
        assert (len(mine), other.result()) == (1, 16)


def test_no_key_is_dropped_before_the_new_ones_are_made(upgraded: list[Host]) -> None:
    before = schema()
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("accounting", "0045_old_keys")
    try:
        with pytest.raises(CommandError, match="Run migrate first"):
            call_command("drop_old_keys", stdout=StringIO())
    finally:
        recorder.record_applied("accounting", "0045_old_keys")
    assert schema() == before


def test_filling_gives_way_to_an_import_and_holds_up_no_report(
    old: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    step("0042_user_of_rows", "add_columns")
    pauses: list[float] = []
    with psycopg.connect(database_url()) as importing, psycopg.connect(database_url(), autocommit=True) as reporting:
        importing.execute("SELECT FROM accounting_grantedtotal FOR UPDATE")

        def meanwhile(secs: float) -> None:
            pauses.append(secs)
            # Raises if somebody has them.
            reporting.execute("SELECT FROM accounting_hostledger FOR UPDATE NOWAIT")
            importing.commit()

        monkeypatch.setattr(short_waits, "time", SimpleNamespace(sleep=meanwhile))
        # If it did not give way, it would wait for ever.
        execute("SET statement_timeout = '20s'")
        step("0043_fill_user_of_rows", "fill")
        execute("RESET statement_timeout")
    assert pauses == [short_waits.PAUSE_SECS]
    assert {row.user_id for row in GrantedTotal.objects.all()} == {old[0].owner_id}
    make_keys()


def test_rows_that_the_old_version_moves_to_a_computer_that_was_filled_get_their_user(
    old: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It merges a record with one that was made earlier, but used longer."""
    step("0042_user_of_rows", "add_columns")
    execute("ALTER TABLE accounting_hostclient DISABLE TRIGGER user_of_host")
    execute(OLD_CLIENT, old[3].pk)
    execute("ALTER TABLE accounting_hostclient ENABLE TRIGGER user_of_host")
    migration = import_module("accounting.migrations.0043_fill_user_of_rows")
    filled: Callable[[list[int]], None] = migration.fill_batch

    def fill_batch(bounds: list[int]) -> None:
        filled(bounds)
        execute("UPDATE accounting_hostclient SET host_id = %s WHERE host_id = %s", old[0].pk, old[3].pk)

    monkeypatch.setattr(migration, "fill_batch", fill_batch)
    step("0043_fill_user_of_rows", "fill")
    make_keys()
    assert HostClient.objects.get().user_id == old[0].owner_id
