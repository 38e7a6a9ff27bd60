"""Sets of exported files in object storage, so that every web server can send them.

A set is written to a folder of the worker first, and then stored under a name of its own, which its row has before
anything is there. The row makes it the published one, in one step; its time stands in it, and never comes twice.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from django.core.files import File
from django.core.files.storage import default_storage

from credit.models import StatisticsExport
from portal.object_storage.backend import ObjectStorage, StorageError


class Opened(NamedTuple):
    """An opened file of the published set."""

    content: IO[bytes]
    nbytes: int
    published_at: dt.datetime


def is_used() -> bool:
    """Whether the site's files are in object storage."""
    return isinstance(default_storage, ObjectStorage)


def open_published(name: str) -> Opened | None:
    """The file of this name; None if nothing was exported yet. StorageError if the storage cannot be asked."""
    last = _published()
    if last is None or last.published_at is None:
        return None
    path = f"{last.folder}/{name}"
    try:
        return Opened(default_storage.open(path, "rb"), default_storage.size(path), last.published_at)
    except FileNotFoundError:
        return None


@contextmanager
def new_set(made: StatisticsExport, taken_at: dt.datetime) -> Iterator[Path]:
    """An empty folder; when the block ends, what is in it is published in place of the set before, which stays.

    If the block fails, what is published does not change. Only one process at a time may be in it.
    """
    before = _published()
    _delete_others(before)
    time = taken_at.replace(microsecond=0)
    if before is not None and before.published_at is not None:
        # Two files of one ETag would be the same file for a reader.
        time = max(time, before.published_at + dt.timedelta(seconds=1))
    with TemporaryDirectory(prefix="statistics") as name:
        yield Path(name)
        made.is_in_storage = True
        made.save(update_fields=["is_in_storage"])
        for file in Path(name).iterdir():
            _store(file, f"{made.folder}/{file.name}")
    made.published_at = time
    made.save(update_fields=["published_at"])


def _published() -> StatisticsExport | None:
    return (
        StatisticsExport.objects.filter(is_in_storage=True, published_at__isnull=False).order_by("published_at").last()
    )


def _store(file: Path, path: str) -> None:
    with file.open("rb") as content:
        saved = default_storage.save(path, File(content))
    if saved != path or default_storage.size(path) != file.stat().st_size:
        raise StorageError(f"the object storage has something else than it was given: {saved}")


def _delete_others(published: StatisticsExport | None) -> None:
    """Sets of earlier days, and whatever a killed worker left. The published one is being read."""
    left = StatisticsExport.objects.filter(is_in_storage=True)
    for row in left.exclude(pk=published.pk) if published else left:
        for name in default_storage.listdir(row.folder)[1]:
            default_storage.delete(f"{row.folder}/{name}")
        row.is_in_storage, row.published_at = False, None
        row.save(update_fields=["is_in_storage", "published_at"])
