"""Months that were archived show the same as before, everywhere, and so do those that were brought back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from accounting.ledger import check
from accounting.ledger.archive import moves
from accounting.models import (
    Day,
    GrantedDay,
    Project,
    Settlement,
)
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host
from tests.support.archived_books import CREDIT, END, TODAY, archive_in, everything, make_history, roll_up

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with archive_in(tmp_path / "archive"):
        yield tmp_path / "archive"


@pytest.fixture
def books(alice: User, bob: User) -> tuple[list[Host], list[Project]]:
    """Alice's history, and some of Bob's, summed up; what projects granted is known of one computer."""
    hosts, projects = make_history(alice)
    credit(make_host(bob, "cellar", "2024-01-01", "2024-03-01"), projects[0], "2024-02-10", (5, 6, 7, 8, 9, 10))
    GrantedDay.objects.create(user=alice, day="2024-02-03", project=projects[0], host=hosts[0], credit=7 * CREDIT)
    GrantedDay.objects.create(user=alice, day="2024-02-04", project=projects[0], host=hosts[0], credit=8 * CREDIT)
    for host, project in ((hosts[0], projects[0]), (hosts[1], projects[0])):
        Settlement.objects.create(
            host=host, project=project, seen_on="2024-01-21", read_on="2026-11-20", estimated_before=40 * CREDIT,
            is_whole=False, granted=15 * CREDIT,
        )  # fmt: skip
    roll_up()
    return hosts, projects


def archive() -> list[moves.Moved]:
    return list(moves.archive_before(END, TODAY))


def restore() -> list[moves.Moved]:
    return list(moves.restore_before(END))


def sound() -> bool:
    assert list(check.differences()) == []
    return True


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


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
