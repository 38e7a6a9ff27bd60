"""The default storage, so that what it has taken is there, whole, also after a power cut.

Wherever it is, what was put into it is read back and compared; object storage may prove it by the MD5 that it computed
itself. Where it is a folder, files and folders are written through to the disk.
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
"""The errors of a disk, or of a share of it, that is full."""


FOLDERS: Final = ("drafts", "files", "outputs", "statistics")
"""All that the site keeps in the default storage is in these."""
_SYNCED_AT_ONCE: Final = 16


class ContentDigest(NamedTuple):
    """What tells one content from another; ``md5``: 32 hexadecimal digits."""

    nbytes: int
    md5: str


def content_of(file: IO[bytes] | File[bytes]) -> ContentDigest:
    """The digest of a file, which is read from its beginning."""
    file.seek(0)
    digest = hashlib.md5(usedforsecurity=False)
    nbytes = 0
    while chunk := file.read(256 * 1024):
        digest.update(chunk)
        nbytes += len(chunk)
    return ContentDigest(nbytes, digest.hexdigest())


def kept_content(path: str, where: Storage = default_storage) -> ContentDigest:
    """The digest of what the storage has under this path; FileNotFoundError if it has nothing."""
    with where.open(path, "rb") as file:
        return content_of(file)


def is_bucket(where: Storage) -> TypeGuard[ObjectStorage]:
    """Whether it is object storage, without loading the library of that: each process would take longer to start."""
    return any(f"{class_.__module__}.{class_.__qualname__}" == BACKEND for class_ in where.__class__.__mro__)


def has(path: str, content: ContentDigest, where: Storage = default_storage) -> bool:
    """Whether the storage has this content under the path; FileNotFoundError if it has nothing there."""
    if is_bucket(where):
        nbytes, md5 = where.as_server_says(path)
        if nbytes != content.nbytes or md5 == content.md5:
            return nbytes == content.nbytes
    return kept_content(path, where) == content


def check(path: str, content: ContentDigest) -> None:
    """OSError if the storage has something else there."""
    if not has(path, content):
        raise OSError(errno.EIO, "the storage has something else than it was given", path)


def forget(paths: Iterable[str]) -> bool:
    """Delete what nobody needs; whether all of it is gone."""
    try:
        for path in paths:
            default_storage.delete(path)
    except OSError as error:
        log.warning("storage_not_deleted", reason=str(error))
        return False
    return True


def keep(wanted: str, file: File[Any], content: ContentDigest) -> str:
    """The path under which the storage has the file now, for good.

    Raises OSError if it could not be kept whole; nothing is left then.
    """
    saved = wanted
    try:
        file.seek(0)
        saved = default_storage.save(wanted, file)
        check(saved, content)
        sync([saved])
    except BaseException:
        # With its own name, which may be part of a file.
        default_storage.delete(saved)
        raise
    return saved


def folder(where: Storage = default_storage) -> Path | None:
    """The folder of the storage or, while that is missing, the one in which it will be; None if it has none."""
    # Not by asking for a path, which Django's storage in memory also gives.
    if not isinstance(where, FileSystemStorage):
        return None
    path = Path(where.path(""))
    while not path.exists():
        path = path.parent
    return path


def sync(paths: Iterable[str], where: Storage = default_storage) -> None:
    """Write these files through to the disk, and the folders in which their names are, as they may be new.

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
