"""Erased accounts leave the files of archived months; the sums of projects stay."""

from __future__ import annotations

import datetime as dt
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import pytest
from django.db import connection
from django.utils import timezone

from accounting.account_data import erasure
from accounting.ledger import check
from accounting.ledger.archive import erase, moves, reads, store
from accounting.models import (
    ArchiveErasure,
    ArchivePart,
    ErasedDay,
    Project,
    ProjectDay,
)
from portal.models import Host, User
from portal.people.deletion import GRACE, ask_deletion
from tests.support.archived_books import (
    END,
    NOW,
    archive,
    everything,
    files,
    restore,
    sound,
)

pytestmark = pytest.mark.django_db


def erase_alice(alice: User) -> None:
    ask_deletion(alice)
    assert erasure.erase_due(timezone.now() + GRACE + dt.timedelta(days=1)) == 1


def project_days() -> list[tuple[object, ...]]:
    return list(
        ProjectDay.objects.order_by("project", "day").values_list("project", "day", "cpu_ec", "gpu_ec", "cpu_time")
    )


def stored_users() -> set[int]:
    return {row.user_id for part in ArchivePart.objects.all() for row in reads.read_part(part, None)}


def test_an_erased_account_is_removed_from_the_files_and_its_sums_stay(
    books: tuple[list[Host], list[Project]], alice: User, bob: User, folder: Path
) -> None:
    archive()
    before, bobs, old = project_days(), everything(bob), set(files(folder))
    number = alice.pk
    erase_alice(alice)
    assert set(ArchiveErasure.objects.values_list("user_number", flat=True)) == {number}
    assert ErasedDay.objects.filter(day__lt=END).count() == 6 * 2
    assert sound()
    assert number in stored_users()
    assert erase.remove_erased() == 3
    assert number not in stored_users()
    # Only February has somebody else's days.
    assert len(files(folder)) == 1
    assert not old & set(files(folder))
    assert not ArchiveErasure.objects.exists()
    assert sound()
    assert (project_days(), everything(bob)) == (before, bobs)
    assert erase.remove_erased() == 0
    restore()
    assert sound()
    assert everything(bob) == bobs


def test_a_replaced_file_that_the_storage_did_not_delete_goes_with_the_next_run(
    books: tuple[list[Host], list[Project]], alice: User, folder: Path
) -> None:
    archive()
    erase_alice(alice)
    (old,) = [folder / name for name in files(folder) if name.startswith("2024-02")]
    content = old.read_bytes()
    assert erase.remove_erased() == 3
    old.write_bytes(content)
    assert erase.remove_erased() == 0
    assert not old.exists()


def test_a_month_is_brought_back_without_accounts_that_are_erased(
    books: tuple[list[Host], list[Project]], alice: User, bob: User, folder: Path
) -> None:
    archive()
    erase_alice(alice)
    assert [each.rows for each in restore()] == [0, 1, 0]
    assert sound()
    assert not ArchiveErasure.objects.exists()
    assert files(folder) == []


def test_an_account_waits_to_be_erased_while_its_days_cannot_be_read(
    books: tuple[list[Host], list[Project]], alice: User, folder: Path
) -> None:
    archive()
    name = ArchivePart.objects.get(month=dt.date(2024, 3, 1)).name
    (folder / name).rename(folder / "away")
    ask_deletion(alice)
    assert erasure.erase_due(timezone.now() + GRACE + dt.timedelta(days=1)) == 0
    assert User.objects.filter(pk=alice.pk).exists()
    assert not ErasedDay.objects.exists()
    (folder / "away").rename(folder / name)
    assert erasure.erase_due(timezone.now() + GRACE + dt.timedelta(days=1)) == 1


@pytest.mark.django_db(transaction=True)
def test_files_are_read_while_nobody_waits_for_a_lock(
    books: tuple[list[Host], list[Project]], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive()
    in_transaction, opened = [], store.opened

    def noted(name: str) -> AbstractContextManager[IO[bytes]]:
        in_transaction.append(connection.in_atomic_block)
        return opened(name)

    monkeypatch.setattr(store, "opened", noted)
    erase_alice(alice)
    assert in_transaction == [False] * 3


def test_an_account_whose_days_moved_after_they_were_read_is_erased_the_next_time(
    books: tuple[list[Host], list[Project]], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, read_days = project_days(), erase.read_days

    def then_archive(user_id: int, now: dt.datetime) -> erase.ArchivedSums:
        found = read_days(user_id, now)
        archive()
        return found

    ask_deletion(alice)
    with monkeypatch.context() as patch:
        patch.setattr(erasure, "read_days", then_archive)
        assert erasure.erase_due(timezone.now() + GRACE + dt.timedelta(days=1)) == 0
    assert User.objects.filter(pk=alice.pk).exists()
    assert erasure.erase_due(timezone.now() + GRACE + dt.timedelta(days=1)) == 1
    assert project_days() == before
    assert sound()


def test_a_month_that_was_not_brought_back_to_its_end_keeps_nobody(
    books: tuple[list[Host], list[Project]], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(moves, "_put_back", interrupted)
        with pytest.raises(KeyboardInterrupt):
            restore()
    assert "accounting_day_2024_03_new" in connection.introspection.table_names()
    erase.remove_erased()
    assert "accounting_day_2024_03_new" not in connection.introspection.table_names()
    erase_alice(alice)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_an_account_that_stays_in_the_archive_for_too_long_is_reported(
    books: tuple[list[Host], list[Project]], alice: User
) -> None:
    archive()
    number = alice.pk
    erase_alice(alice)
    ArchiveErasure.objects.update(erased_at=NOW - dt.timedelta(days=400))
    lines = list(check.differences())
    months = ("2024-01", "2024-02", "2024-03")
    assert lines == [f"account {number}: its days are still in the archive of {month}" for month in months]
