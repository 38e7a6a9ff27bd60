"""The default storage, used such that a stored file is complete, even after a power cut.

In any storage, what was written is read back and compared; for object storage, the MD5 that it computed itself may
serve as proof. In a folder, files and folders are written through to the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

import structlog
from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage, default_storage

from portal.object_storage.options import BACKEND

if TYPE_CHECKING:
    from portal.object_storage.backend import ObjectStorage

log = structlog.get_logger(__name__)

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors for a full disk, or a full quota."""


FOLDERS: Final = ("drafts", "files", "outputs", "statistics")
"""The site keeps everything in the default storage within these."""
_SYNCED_AT_ONCE: Final = 16


class ContentDigest(NamedTuple):
    """Identifies a content; ``md5``: 32 hexadecimal digits."""

    nbytes: int
    md5: str


def content_of(file: IO[bytes] | File[bytes]) -> ContentDigest:
    """Compute the digest of a file, from its beginning."""
    file.seek(0)
    digest = hashlib.md5(usedforsecurity=False)
    nbytes = 0
    while chunk := file.read(256 * 1024):
        digest.update(chunk)
        nbytes += len(chunk)
    return ContentDigest(nbytes, digest.hexdigest())


def kept_content(path: str, where: Storage = default_storage) -> ContentDigest:
    """The digest of the stored content under this path; FileNotFoundError if there is none."""
    with where.open(path, "rb") as file:
        return content_of(file)


def is_bucket(where: Storage) -> TypeGuard[ObjectStorage]:
    """Whether it is object storage, without importing its library, which would slow the start of each process."""
    return any(f"{class_.__module__}.{class_.__qualname__}" == BACKEND for class_ in where.__class__.__mro__)


def has(path: str, content: ContentDigest, where: Storage = default_storage) -> bool:
    """Whether the storage has this content under the path; FileNotFoundError if it has nothing there."""
    if is_bucket(where):
        nbytes, md5 = where.as_server_says(path)
        if nbytes != content.nbytes or md5 == content.md5:
            return nbytes == content.nbytes
    return kept_content(path, where) == content


def check(path: str, content: ContentDigest) -> None:
    """Raise OSError if the storage has other content there."""
    if not has(path, content):
        raise OSError(errno.EIO, "the stored content differs from what was written", path)


def forget(paths: Iterable[str]) -> bool:
    """Delete files that nobody needs; return whether all of them are gone."""
    try:
        for path in paths:
            default_storage.delete(path)
    except OSError as error:
        log.warning("storage_not_deleted", reason=str(error))
        return False
    return True


def keep(wanted: str, file: File[Any], content: ContentDigest) -> str:
    """Store the file for good, and return its path in the storage.

    Raises OSError if it could not be stored completely; nothing is left then.
    """
    saved = wanted
    try:
        file.seek(0)
        saved = default_storage.save(wanted, file)
        check(saved, content)
        sync([saved])
    except BaseException:
        # By the name it got, under which there may be a part of the file.
        default_storage.delete(saved)
        raise
    return saved


def folder(where: Storage = default_storage) -> Path | None:
    """The folder of the storage or, while that is missing, its nearest existing parent; None if it has no folder."""
    # Not by asking for a path, as Django's storage in memory gives one, too.
    if not isinstance(where, FileSystemStorage):
        return None
    path = Path(where.path(""))
    while not path.exists():
        path = path.parent
    return path


def sync(paths: Iterable[str], where: Storage = default_storage) -> None:
    """Write these files through to the disk, and also their folders, as names in them may be new.

    Several at once: the file system then writes them together, which is much quicker for thousands of small ones.
    """
    root = folder(where)
    if root is None:
        return
    files = [Path(where.path(path)) for path in paths]
    folders = {parent for file in files for parent in file.parents if parent.is_relative_to(root)}
    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        for _ in pool.map(_fsync, [*files, *folders]):
            pass


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
