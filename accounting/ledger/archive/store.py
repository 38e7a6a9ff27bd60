"""The storage of the archive: Django's storage "archive", a folder or a bucket. A file never changes; its name is new.

Any failure of the storage, of whatever library, is an ArchiveUnreadable that names the file.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import structlog
from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

log = structlog.get_logger("archive")
_READ_BYTES: Final = 1 << 20


class ArchiveUnreadable(Exception):
    """A file of the archive that cannot be read now; the text says which one and why."""


class FileMissing(ArchiveUnreadable):
    """The storage does not have the file."""


def storage() -> Storage:
    return storages["archive"]


def folder_of(month: dt.date) -> str:
    return f"{month:%Y-%m}"


def save(month: dt.date, content: bytes) -> str:
    """Keep a new file of a month; its name. When this returns, the file is on the disk, or in the bucket."""
    name = f"{folder_of(month)}/{uuid.uuid4().hex}.parquet"
    kept = storage().save(name, ContentFile(content))
    _sync(kept)
    return kept


def _sync(name: str) -> None:
    """Have the file and its folders written to the disk, if there is a disk: a bucket has it when it answers."""
    try:
        path = Path(storage().path(name))
    except NotImplementedError:
        return
    for each in (path, path.parent, path.parent.parent):
        number = os.open(each, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """The file, open for reading. What goes wrong with it meanwhile, or in it, is an ArchiveUnreadable."""
    try:
        with storage().open(name, "rb") as file:
            yield file
    except FileNotFoundError as error:
        raise FileMissing(f"archived file {name} is missing") from error
    # Whatever it is: each storage has errors of its own, and so has a damaged file.
    except Exception as error:
        raise ArchiveUnreadable(f"archived file {name} cannot be read: {error}") from error


def digest(name: str) -> tuple[int, str]:
    """Size and SHA-256 of what the storage has."""
    found, size = hashlib.sha256(), 0
    with opened(name) as file:
        while piece := file.read(_READ_BYTES):
            found.update(piece)
            size += len(piece)
    return size, found.hexdigest()


def remove(name: str) -> None:
    """Remove a file that no row names any more; one that is gone is no error."""
    try:
        storage().delete(name)
    # Whatever it is: the file is removed by the next run (`remove_strays`).
    except Exception:
        log.exception("archived_file_not_removed", name=name)


def remove_strays(known: set[str]) -> int:
    """Remove files that were written and not taken, or replaced and not removed, by a run that was killed; how many."""
    nremoved = 0
    for folder in _listed("", 0):
        for file in _listed(folder, 1):
            name = f"{folder}/{file}"
            if file.endswith(".parquet") and name not in known:
                remove(name)
                nremoved += 1
    return nremoved


def _listed(folder: str, which: int) -> list[Any]:
    """Folders (0) or files (1) in a folder; a folder that is not there has none."""
    try:
        return list(storage().listdir(folder)[which])
    except FileNotFoundError:
        return []
