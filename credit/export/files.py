"""The published exports: each a set of files in the default storage, from which every web server sends them.

A set is first written to a folder of the worker, below ``settings.VAR_DIR``, and then stored in its own folder. Its row
makes it the published one, in one step, when it is complete. Its time is that of the files, which never change, and no
two sets have the same; so size and time form a strong ETag, the same one that nginx builds.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage

from credit.models import StatisticsExport
from portal.object_storage import storage

_UNFINISHED: Final = "unfinished-statistics-"
_UNFINISHED_SECS: Final = 86_400
"""No export takes this long."""
_PARTS_NBYTES: Final = 512 * 1024
# For zlib: a gzip file at a level that takes a third of the usual time, and a tenth more space.
_GZIP_WBITS: Final = 31
_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file of the published set."""

    path: str
    nbytes: int
    modified_at: int

    @property
    def etag(self) -> str:
        return f'"{self.modified_at:x}-{self.nbytes:x}"'

    def open(self) -> IO[bytes]:
        """Open its content, which the caller closes."""
        return default_storage.open(self.path, "rb")


def find_published(name: str) -> PublishedFile | None:
    """Find the published file of this name; None if nothing was exported yet.

    Names are already checked. Raises the storage's OSError.
    """
    last = _published_set()
    if last is None or last.published_at is None:
        return None
    path = f"{last.folder}/{name}"
    try:
        return PublishedFile(path, default_storage.size(path), int(last.published_at.timestamp()))
    except FileNotFoundError:
        return None


@contextmanager
def new_set(made: StatisticsExport, taken_at: dt.datetime) -> Iterator[Path]:
    """Yield an empty folder for an export; at the end of the block its content is published. The previous set stays.

    If the block fails, the published set does not change. Only one process at a time may be inside.
    """
    before = _published_set()
    _delete_others(before)
    published_at = taken_at.replace(microsecond=0)
    if before is not None and before.published_at is not None:
        # Two files with one ETag would be the same file for a reader.
        published_at = max(published_at, before.published_at + dt.timedelta(seconds=1))
    with _folder() as name:
        yield Path(name)
        made.is_in_storage = True
        made.save(update_fields=["is_in_storage"])
        for file in Path(name).iterdir():
            _store(file, f"{made.folder}/{file.name}", published_at)
    made.published_at = published_at
    made.save(update_fields=["published_at"])


def write(path: Path, parts: Iterable[bytes], *, is_compressed: bool) -> int:
    """Write these parts to a new file, synced to the disk; return its size."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WBITS) if is_compressed else None
    with path.open("xb") as file:
        for block in _blocks(parts):
            file.write(packer.compress(block) if packer else block)
        if packer:
            file.write(packer.flush())
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def _blocks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join small parts into large pieces."""
    waiting: list[bytes] = []
    nbytes = 0
    for part in parts:
        waiting.append(part)
        nbytes += len(part)
        if nbytes >= _PARTS_NBYTES:
            yield b"".join(waiting)
            waiting.clear()
            nbytes = 0
    yield b"".join(waiting)


def _folder() -> TemporaryDirectory[str]:
    """Create an empty folder on a disk, because temporary folders may be in memory.

    Leftovers of killed workers are deleted.
    """
    within: Path = settings.VAR_DIR
    within.mkdir(parents=True, exist_ok=True)
    for left in within.glob(f"{_UNFINISHED}*"):
        if left.stat().st_mtime < time.time() - _UNFINISHED_SECS:
            shutil.rmtree(left, ignore_errors=True)
    return TemporaryDirectory(prefix=_UNFINISHED, dir=within)


def _published_set() -> StatisticsExport | None:
    return (
        StatisticsExport.objects.filter(is_in_storage=True, published_at__isnull=False).order_by("published_at").last()
    )


def _store(file: Path, path: str, published_at: dt.datetime) -> None:
    default_storage.delete(path)  # left by a set whose row a restored database has forgotten
    with file.open("rb") as opened:
        content = File(opened)
        if storage.keep(path, content, storage.content_of(content)) != path:
            raise OSError(EIO, "the storage has something there that it cannot delete", path)
    if storage.folder() is not None:
        # nginx sends it, with its own ETag.
        os.utime(default_storage.path(path), (published_at.timestamp(), published_at.timestamp()))


def _delete_others(published: StatisticsExport | None) -> None:
    """Delete sets of earlier days, and whatever a killed worker left. The published one is being read."""
    left = StatisticsExport.objects.filter(is_in_storage=True)
    for row in left.exclude(pk=published.pk) if published else left:
        with suppress(FileNotFoundError):  # its folder was never created
            for name in default_storage.listdir(row.folder)[1]:
                default_storage.delete(f"{row.folder}/{name}")
        default_storage.delete(row.folder)
        row.is_in_storage, row.published_at = False, None
        row.save(update_fields=["is_in_storage", "published_at"])
