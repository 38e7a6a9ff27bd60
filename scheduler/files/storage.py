"""The default storage, so that what it has taken is there, whole, also after a power cut.

Wherever it is, what was put into it is read back and compared. Where it is a folder, files and folders are written
through to the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from django.core.files import File
from django.core.files.storage import FileSystemStorage, default_storage

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a disk, or of a share of it, that is full."""


class Content(NamedTuple):
    """What tells one content from another; ``md5``: 32 hexadecimal digits."""

    nbytes: int
    md5: str


def content_of(file: IO[bytes] | File[bytes]) -> Content:
    """Of a file, which is read from its beginning."""
    file.seek(0)
    digest = hashlib.md5(usedforsecurity=False)
    nbytes = 0
    while chunk := file.read(256 * 1024):
        digest.update(chunk)
        nbytes += len(chunk)
    return Content(nbytes, digest.hexdigest())


def kept_content(path: str) -> Content:
    """Of what the storage has under this path; FileNotFoundError if it has nothing."""
    with default_storage.open(path, "rb") as file:
        return content_of(file)


def keep(wanted: str, file: File[Any], content: Content) -> str:
    """The path under which the storage has the file now, for good. What was under ``wanted`` before is deleted.

    Raises OSError if it could not be kept whole; nothing is left then.
    """
    default_storage.delete(wanted)
    saved = wanted
    try:
        file.seek(0)
        saved = default_storage.save(wanted, file)
        if kept_content(saved) != content:
            raise OSError(errno.EIO, "the storage has something else than it was given", saved)
        _sync(saved)
    except BaseException:
        # With its own name, which may be part of a file.
        default_storage.delete(saved)
        raise
    return saved


def folder() -> Path | None:
    """The folder of the storage or, while that is missing, the one in which it will be; None if it has none."""
    # Not by asking for a path, which Django's storage in memory also gives.
    if not isinstance(default_storage, FileSystemStorage):
        return None
    found = Path(default_storage.path(""))
    while not found.exists():
        found = found.parent
    return found


def sync_all() -> None:
    """Write everything through to the disks, for instance thousands of small files: one by one took far longer."""
    if folder() is not None:
        os.sync()


def _sync(path: str) -> None:
    """Write the file through to the disk, and the folders in which its name is, as they may be new."""
    root = folder()
    if root is None:
        return
    file = Path(default_storage.path(path))
    for each in (file, *file.parents):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if each == root:
            break
