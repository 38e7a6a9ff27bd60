"""Archived months in a bucket, beside the site's files: read, checked, cleared of erased accounts, and brought back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.test import override_settings
from django.utils import timezone

from accounting.ledger.archive import erase, store
from accounting.models import ArchivePart, Project
from portal.models import Host, User
from portal.object_storage import options
from portal.object_storage.backend import ObjectStorage
from scheduler.files import leftovers
from tests.accounting.ledger.archive.test_erasures import erase_alice
from tests.support.archived_books import archive, everything, restore, sound
from tests.support.s3_server import S3Server, keys, variables

pytestmark = pytest.mark.django_db
OTHERS = {"archive-of-others/2020-01/days.parquet", "inputs/2024-01/days.parquet"}


@pytest.fixture
def bucket(folder: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStorage]:
    """All of it, with files of the site and of others; the archive is in a folder of it."""
    for name, value in variables(s3_server.url, s3_server.new_bucket()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ARCHIVE_STORAGE", "s3")
    entries = {"default": options.storage_entry(), "archive": options.archive_entry("unused")}
    with override_settings(STORAGES={**settings.STORAGES, **entries}):
        found = options.read()
        assert found is not None
        whole = ObjectStorage(found)
        for name in OTHERS:
            whole.save(name, ContentFile(b"theirs"))
        yield whole
        whole.close()


def archived(bucket: ObjectStorage) -> set[str]:
    """The keys in the bucket but for those of others, which are all still there."""
    found = set(keys(bucket))
    assert found >= OTHERS
    return found - OTHERS


def test_months_in_a_bucket_are_read_checked_and_brought_back(
    books: tuple[list[Host], list[Project]], alice: User, bob: User, bucket: ObjectStorage
) -> None:
    before = everything(alice), everything(bob)
    assert [each.rows for each in archive()] == [12, 9, 4]
    kept = archived(bucket)
    assert kept == {f"archive/{name}" for name in ArchivePart.objects.values_list("name", flat=True)}
    store.storage().save("2024-01/stray.parquet", ContentFile(b"left by a run that was killed"))
    leftovers.delete(timezone.now())
    assert archive() == []
    assert archived(bucket) == kept
    assert sound()
    assert (everything(alice), everything(bob)) == before
    assert [each.rows for each in restore()] == [4, 9, 12]
    assert archived(bucket) == set()
    assert sound()
    assert (everything(alice), everything(bob)) == before


def test_an_erased_account_goes_from_the_bucket(
    books: tuple[list[Host], list[Project]], alice: User, bob: User, bucket: ObjectStorage
) -> None:
    archive()
    bobs = everything(bob)
    erase_alice(alice)
    assert erase.remove_erased() == 3
    assert len(archived(bucket)) == 1
    assert sound()
    assert everything(bob) == bobs


def test_a_month_whose_object_is_gone_is_told_and_nothing_is_shown_without_it(
    books: tuple[list[Host], list[Project]], alice: User, bucket: ObjectStorage
) -> None:
    archive()
    store.remove(ArchivePart.objects.order_by("month").values_list("name", flat=True)[0])
    with pytest.raises(store.FileMissing):
        everything(alice)
