"""Months that were archived show the same as before, everywhere, and so do those that were brought back."""

from __future__ import annotations

import datetime as dt
import io
import random
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from pytest_django import DjangoAssertNumQueries

from accounting.badges import award
from accounting.computers.merge import merge
from accounting.engine.badges import BadgeKind
from accounting.exchange.day_rows import DayRange
from accounting.ledger import partitions, rollup
from accounting.ledger.archive import erase, moves, parquet, reads, sql, store
from accounting.ledger.sql import AdvisoryLock
from accounting.models import (
    ArchivedMonth,
    ArchivePart,
    Badge,
    BadgeAward,
    Day,
    GrantedDay,
    Month,
    Project,
)
from portal.models import Host, User
from tests.support.accounting_factories import make_project
from tests.support.archived_books import (
    CREDIT,
    END,
    NOW,
    TODAY,
    archive,
    everything,
    files,
    make_history,
    restore,
    sound,
)

pytestmark = pytest.mark.django_db


def partitions_left() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = 'accounting_day'::regclass AND c.relname < 'accounting_day_2024_06'"
        )
        return {name for (name,) in cursor.fetchall()}


def test_every_reader_says_the_same_before_after_and_when_it_is_back(
    books: tuple[list[Host], list[Project]], alice: User, bob: User, folder: Path
) -> None:
    before = everything(alice), everything(bob)
    rows = list(Day.objects.order_by("pk").values())
    assert [each.rows for each in archive()] == [12, 9, 4]
    assert not Day.objects.filter(day__lt=END).exists()
    assert partitions_left() == {"accounting_day_2024_04", "accounting_day_2024_05"}
    assert sound()
    assert (everything(alice), everything(bob)) == before
    assert len(files(folder)) == 3
    assert [each.rows for each in restore()] == [4, 9, 12]
    assert sound()
    assert (everything(alice), everything(bob)) == before
    assert list(Day.objects.order_by("pk").values()) == rows
    assert files(folder) == []
    assert archive() != []


def test_archiving_again_changes_nothing(books: tuple[list[Host], list[Project]], folder: Path) -> None:
    archive()
    kept = files(folder)
    assert archive() == []
    assert files(folder) == kept


def test_the_command_says_what_it_did_and_undoes_it(books: tuple[list[Host], list[Project]]) -> None:
    said = io.StringIO()
    call_command("archive_months", before="2024-02", stdout=said)
    assert said.getvalue().startswith("2024-01 archived: 12 rows, 1 files, ")
    assert said.getvalue().endswith("\n1 months.\n")
    call_command("archive_months", before="2024-04", restore=True, stdout=said)
    assert "2024-01 brought back: 12 rows" in said.getvalue()
    assert sound()


@pytest.mark.parametrize("text", ["2024-13", "2024-1", "2024-01-01", "²024-01", "0000-01", "yesterday", ""])
def test_a_month_that_is_none_is_refused(db: None, text: str) -> None:
    with pytest.raises(CommandError, match="is no month"):
        call_command("archive_months", before=text)


def test_young_months_are_refused(books: tuple[list[Host], list[Project]]) -> None:
    # Fifteen months before November 2026.
    assert reads.young_from(TODAY) == dt.date(2025, 8, 1)
    with pytest.raises(moves.ArchiveRefused, match="from 2025-08 on are too young"):
        list(moves.archive_before(dt.date(2025, 9, 1), TODAY))


def test_months_that_are_not_summed_up_are_refused(alice: User) -> None:
    make_history(alice)
    with pytest.raises(moves.ArchiveRefused, match="roll up first"):
        archive()


@pytest.mark.parametrize("table", ["accounting_month", "accounting_projectday", "accounting_bestday"])
def test_a_month_whose_sums_are_wrong_is_refused_and_leaves_no_file(
    books: tuple[list[Host], list[Project]], folder: Path, table: str
) -> None:
    column = {"accounting_bestday": "ec"}.get(table, "cpu_ec")
    day = "day" if table == "accounting_projectday" else "month"
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {column} + 1 WHERE {day} < '2024-02-01'")
    with pytest.raises(moves.ArchiveRefused, match="Nothing was archived of this month"):
        archive()
    assert files(folder) == []
    assert not ArchivedMonth.objects.exists()
    assert "accounting_day_2024_01" in partitions_left()


def test_a_months_rows_are_in_files_of_whole_volunteers(
    books: tuple[list[Host], list[Project]], alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "PART_ROWS", 3)
    before = everything(alice), everything(bob)
    archive()
    # Alice's eight days of February are in one file, whatever the limit.
    parts = ArchivePart.objects.filter(month=dt.date(2024, 2, 1)).order_by("first_user")
    assert [(part.first_user, part.last_user, part.rows) for part in parts] == [
        (alice.pk, alice.pk, 8),
        (bob.pk, bob.pk, 1),
    ]
    assert sound()
    assert (everything(alice), everything(bob)) == before


def test_an_archived_month_gets_no_days_and_is_not_summed_up_anew(books: tuple[list[Host], list[Project]]) -> None:
    archive()
    day = dt.date(2024, 2, 2)
    with pytest.raises(partitions.MonthIsArchived, match="2024-02 is archived"):
        partitions.create_months(day, day)
    with pytest.raises(partitions.MonthIsArchived, match="2024-03 is archived"):
        rollup.roll_up(NOW, since=dt.date(2024, 3, 15))
    assert rollup.roll_up(NOW, since=END)
    assert sound()


def test_computers_merged_after_archiving_show_as_one_and_stay_so_when_it_is_back(
    books: tuple[list[Host], list[Project]], alice: User
) -> None:
    hosts, _ = books
    archive()
    merge(alice.pk, hosts[0].pk, hosts[1].pk)
    assert sound()
    merged = everything(alice)
    assert merged["merge preview"] == [9]
    restore()
    assert sound()
    assert everything(alice) == merged
    assert not Day.objects.filter(host=hosts[1]).exists()


def test_merging_is_the_same_before_and_after_archiving(books: tuple[list[Host], list[Project]], alice: User) -> None:
    hosts, _ = books
    merge(alice.pk, hosts[0].pk, hosts[1].pk)
    before = everything(alice)
    archive()
    assert everything(alice) == before
    assert sound()


def test_late_grants_of_an_archived_month_count(books: tuple[list[Host], list[Project]], alice: User) -> None:
    hosts, projects = books
    archive()
    GrantedDay.objects.create(user=alice, day="2024-02-20", project=projects[1], host=hosts[1], credit=CREDIT)
    Month.objects.create(user=alice, month="2024-02-01", project=make_project(), host=hosts[1], granted=0)
    Month.objects.filter(user=alice, month="2024-02-01", project=projects[1], host=hosts[1]).update(granted=CREDIT)
    assert sound()
    text = everything(alice)[f"csv {_wide()}"]
    assert b"2024-02-20" in text
    restore()
    assert sound()
    assert everything(alice)[f"csv {_wide()}"] == text


def _wide() -> DayRange:
    return DayRange(dt.date(2020, 1, 1), TODAY)


def test_a_reader_that_began_before_a_file_was_replaced_or_brought_back_goes_on(
    books: tuple[list[Host], list[Project]], alice: User
) -> None:
    archive()
    wanted = [alice.pk], [(dt.date(2024, 1, 1), dt.date(2024, 3, 31))]
    with reads.archived(*wanted) as old:
        pass
    before = list(old.days())
    assert len(before) == 24
    for part in list(ArchivePart.objects.all()):
        rows = [(*row[:4], *row.amounts, row.flags) for row in reads.read_part(part, None)]
        new = moves.write_part(part.month_id, rows)
        store.remove(part.name)
        part.delete()
        new.save()
    assert list(old.days()) == before
    restore()
    assert list(old.days()) == before


def test_one_run_at_a_time(books: tuple[list[Host], list[Project]]) -> None:
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute(sql.TRY_ALONE, [AdvisoryLock.ARCHIVE.value])
            with pytest.raises(moves.ArchiveRefused, match="Another run"):
                archive()
            assert erase.remove_erased() == 0
            cursor.execute(sql.LET_OTHERS, [AdvisoryLock.ARCHIVE.value])
    finally:
        other.close()


def test_young_ranges_cost_no_statement(
    books: tuple[list[Host], list[Project]], alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0), reads.archived([alice.pk], [(dt.date(2026, 1, 1), TODAY)]) as old:
        assert list(old.days()) == []


def test_a_volunteers_days_are_found_without_reading_the_whole_file() -> None:
    """50,000 rows of 500 volunteers with 100 each: these are in one of 25 groups of rows, or in two."""
    number = random.Random(1)
    rows = [
        (
            user,
            dt.date(2024, 1, 1 + day),
            project,
            user * 7 + host,
            *(number.randrange(10**9) for _ in range(4)),
            5,
            1,
            0,
        )
        for user in range(1, 501)
        for day in range(25)
        for project in range(2)
        for host in range(2)
    ]
    content = parquet.as_file(rows)
    file = CountedFile(content)
    found = list(parquet.read_rows(file, [250]))
    assert found == [row for row in rows if row[0] == 250]
    # The end of the file, which says where the groups are, is 64 kB.
    assert file.nread < len(content) / 5


class CountedFile(io.BytesIO):
    nread = 0

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        self.nread += len(piece)
        return piece


def test_badges_that_were_reached_in_an_archived_month_get_their_day(
    books: tuple[list[Host], list[Project]], alice: User
) -> None:
    archive()
    badge = Badge.objects.create(title="Four hundred", kind=BadgeKind.CREDIT.value, threshold=400, is_active=True)
    award.award_due(NOW)
    # 40 + 50 + 80 + 100 credits a day: 270 on the first, 540 on the second.
    assert BadgeAward.objects.get(badge=badge, user=alice).day == dt.date(2024, 1, 21)
