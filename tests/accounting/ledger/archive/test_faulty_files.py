"""Files that are missing, damaged, or not those that were written."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from accounting.ledger import check
from accounting.ledger.archive import store
from accounting.models import (
    ArchivedMonth,
    ArchivePart,
    Project,
)
from portal.models import Host, User
from tests.support.archived_books import (
    archive,
    everything,
    restore,
)

pytestmark = pytest.mark.django_db


def test_a_missing_file_is_named(books: tuple[list[Host], list[Project]], alice: User, folder: Path) -> None:
    archive()
    name = ArchivePart.objects.get(month=dt.date(2024, 2, 1)).name
    (folder / name).unlink()
    assert f"archived file {name} is missing" in list(check.differences())
    with pytest.raises(store.FileMissing, match=name):
        everything(alice)
    with pytest.raises(store.ArchiveUnreadable, match=name):
        restore()


@pytest.mark.parametrize("place", [10, 300, -20])
def test_a_damaged_file_is_named(books: tuple[list[Host], list[Project]], folder: Path, place: int) -> None:
    archive()
    name = ArchivePart.objects.get(month=dt.date(2024, 2, 1)).name
    content = bytearray((folder / name).read_bytes())
    content[place] ^= 1
    (folder / name).write_bytes(content)
    assert any(name in line and "damaged" in line for line in check.differences())
    with pytest.raises(store.ArchiveUnreadable, match=name):
        restore()
    assert ArchivedMonth.objects.filter(pk="2024-02-01").exists()


def test_a_file_of_other_days_is_found_by_its_sums(books: tuple[list[Host], list[Project]], folder: Path) -> None:
    archive()
    january, february = ArchivePart.objects.filter(month__lt="2024-03-01").order_by("month")
    (folder / february.name).write_bytes((folder / january.name).read_bytes())
    ArchivePart.objects.filter(pk=february.pk).update(
        size_bytes=january.size_bytes, sha256=january.sha256, rows=january.rows
    )
    lines = list(check.differences())
    assert any("the month differs from its archived days" in line for line in lines)
    assert any("the best day differs" in line for line in lines)
    assert any("the roll-up differs from the archived days" in line for line in lines)
