"""The folder of the exports: a set is written beside the present one, and takes its place whole.

``current`` leads to the set that is published. Its files have the time of the export, and never change. So size and
time are a strong ETag, the very one that nginx makes of them, whoever sends the file.

Where the site's files are in object storage, so are these (`credit.export.in_storage`).
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from django.conf import settings

from credit.export import in_storage
from credit.models import StatisticsExport

CURRENT: Final = "current"
_PARTS_NBYTES: Final = 512 * 1024
_UNFINISHED: Final = ".unfinished-"
# Of zlib: a gzip file, compressed at the level that takes a third of the usual time, and a tenth more room.
_GZIP_WBITS: Final = 31
_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class Published:
    """An opened file of the published set."""

    content: IO[bytes]
    nbytes: int
    modified_at: int

    @property
    def etag(self) -> str:
        return f'"{self.modified_at:x}-{self.nbytes:x}"'


def open_published(name: str) -> Published | None:
    """The file of this name, which the caller closes; None if nothing was exported yet. Names are checked before."""
    if in_storage.is_used():
        found = in_storage.open_published(name)
        return found and Published(found.content, found.nbytes, int(found.published_at.timestamp()))
    try:
        content = (settings.STATISTICS_DIR / CURRENT / name).open("rb")
    except FileNotFoundError:
        return None
    about = os.fstat(content.fileno())
    return Published(content, about.st_size, int(about.st_mtime))


@contextmanager
def new_set(made: StatisticsExport, taken_at: dt.datetime) -> Iterator[Path]:
    """An empty folder for an export; when the block ends, what is in it is published. The set before stays.

    If the block fails, what is published does not change. Only one process at a time may be in it.
    """
    if in_storage.is_used():
        with in_storage.new_set(made, taken_at) as unfinished:
            yield unfinished
        return
    folder: Path = settings.STATISTICS_DIR
    folder.mkdir(parents=True, exist_ok=True)
    before = _published_set(folder)
    # Sets of earlier days, and whatever a killed worker left, take no room from the new set.
    for left in folder.iterdir():
        if left == before or not (left.name.isdigit() or left.name.startswith(_UNFINISHED)):
            continue
        if left.is_symlink():
            left.unlink()
        else:
            shutil.rmtree(left)
    time = int(taken_at.timestamp())
    if before is not None:
        # Two files of one ETag would be the same file for a reader.
        time = max(time, int((before / "tables.xml").stat().st_mtime) + 1)
    unfinished = folder / f"{_UNFINISHED}{time}"
    unfinished.mkdir()
    try:
        yield unfinished
        for file in unfinished.iterdir():
            os.utime(file, (time, time))
        _sync(unfinished)
        final = folder / f"{time}"
        unfinished.rename(final)
        _publish(folder, final)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        if _published_set(folder) == before:
            shutil.rmtree(folder / f"{time}", ignore_errors=True)
        raise


def write(path: Path, parts: Iterable[bytes], *, is_compressed: bool) -> int:
    """Write a new file of these parts, safely on the disk; its size."""
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
    """The same bytes in large pieces."""
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


def _published_set(folder: Path) -> Path | None:
    link = folder / CURRENT
    return folder / link.readlink().name if link.is_symlink() and link.exists() else None


def _publish(folder: Path, final: Path) -> None:
    """Lead ``current`` to the new set in one step."""
    link = folder / f"{_UNFINISHED}link"
    link.unlink(missing_ok=True)
    link.symlink_to(final.name)
    link.replace(folder / CURRENT)
    _sync(folder)


def _sync(folder: Path) -> None:
    """Have the names in a folder safely on the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
