"""ZIP archives of input files, which anybody may have made: read with limits, and never unpacked into a folder.

An entry's name is only a text by which jobs name it. What the archive says of itself is not believed: its directory is
read up to a limit, each entry up to the size it claims, and sizes are added up before anything is unpacked.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Final

from scheduler.wire.job_fields import JobError, KeptContent
from scheduler.wire.job_table import MAX_TABLE_NBYTES, Fault

MAX_ENTRIES: Final = 10_000
MAX_DIRECTORY_NBYTES: Final = 2 * 1024 * 1024
"""The list of the entries: zipfile reads it whole, so that a million entries would take gigabytes of memory."""
MAX_ENTRY_NBYTES: Final = 64 * 1024 * 1024
MAX_UNPACKED_NBYTES: Final = 512 * 1024 * 1024
MAX_PATH_CHARS: Final = 200
TABLE: Final = "jobs.csv"
_PART_NBYTES: Final = 256 * 1024
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    OverflowError,  # a place beyond what any file system takes
)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A file of an archive that is open: a `KeptContent`."""

    archive: zipfile.ZipFile
    info: zipfile.ZipInfo

    @property
    def nbytes(self) -> int:
        return self.info.file_size

    def read(self) -> bytes:
        try:
            with self.archive.open(self.info) as content:
                return b"".join(iter(lambda: content.read(_PART_NBYTES), b""))
        except _DAMAGED as error:
            name = ascii(self.info.filename)[1:-1]
            raise JobError("input_files", f"{name} is damaged in the archive: {error}") from error

    def check(self) -> str:
        """What is wrong with its content; empty if nothing is."""
        try:
            with self.archive.open(self.info) as content:
                while content.read(_PART_NBYTES):
                    pass
        except _DAMAGED as error:
            return f"damaged in the archive: {error}"
        return ""


@dataclass(slots=True)
class Archive:
    """What is in an archive. ``files``: by their paths in it, without the table; ``table``: the text of jobs.csv."""

    files: dict[str, KeptContent] = field(default_factory=dict)
    table: str | None = None
    faults: list[Fault] = field(default_factory=list)


class _Bounded:
    """A file of which no more is read at once than the directory of an archive may have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable, self.close = file.seek, file.tell, file.seekable, file.close

    def read(self, nbytes: int = -1) -> bytes:
        # Without a number all that is left is asked for: the end of the archive.
        data = self._file.read(nbytes if 0 <= nbytes <= MAX_DIRECTORY_NBYTES else MAX_DIRECTORY_NBYTES + 1)
        if len(data) > MAX_DIRECTORY_NBYTES:
            raise zipfile.BadZipFile(f"the list of its files has more than {MAX_DIRECTORY_NBYTES} bytes")
        return data


@contextmanager
def opened(file: IO[bytes]) -> Iterator[Archive]:
    """The archive, whose entries may be read inside of the block."""
    bounded: Any = _Bounded(file)
    try:
        packed = zipfile.ZipFile(bounded)
    except _DAMAGED as error:
        yield Archive(faults=[Fault("", "", f"this is not a readable ZIP archive: {error}")])
        return
    with packed:
        yield _read(packed)


def _read(packed: zipfile.ZipFile) -> Archive:
    archive = Archive()
    # Not is_dir(), which fails for an empty name.
    entries = [info for info in packed.infolist() if not info.filename.endswith("/")]
    total = sum(info.file_size for info in entries)
    if len(entries) > MAX_ENTRIES:
        archive.faults.append(Fault("", "", f"{len(entries)} files in the archive; the limit is {MAX_ENTRIES}"))
    elif total > MAX_UNPACKED_NBYTES:
        message = f"unpacked they have {total} bytes; the limit is {MAX_UNPACKED_NBYTES}"
        archive.faults.append(Fault("", "", message))
    if archive.faults:
        return archive
    for info in entries:
        if message := _fault(info):
            archive.faults.append(Fault(ascii(info.filename[:MAX_PATH_CHARS])[1:-1], "", message))
        elif info.filename in archive.files:
            archive.faults.append(Fault(info.filename, "", "twice in the archive"))
        else:
            archive.files[info.filename] = Entry(packed, info)
    if TABLE in archive.files:
        _take_table(archive)
    return archive


def _fault(info: zipfile.ZipInfo) -> str:
    mode = info.external_attr >> 16
    path = info.filename
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "not an ordinary file but a link or something similar"
    if info.flag_bits & 0x1:
        return "encrypted"
    # zipfile unpacks the others without a limit.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "not compressed by the usual method (deflate)"
    if len(path) > MAX_PATH_CHARS or not path.isprintable() or any(blank in path for blank in " \\:"):
        return f"not a path of at most {MAX_PATH_CHARS} printable characters without spaces, \\ and :"
    if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
        return "its path leads out of the archive"
    if info.file_size > MAX_ENTRY_NBYTES:
        return f"{info.file_size} bytes; the limit is {MAX_ENTRY_NBYTES}"
    return ""


def _take_table(archive: Archive) -> None:
    entry = archive.files.pop(TABLE)
    if entry.nbytes > MAX_TABLE_NBYTES:
        archive.faults.append(Fault(TABLE, "", f"{entry.nbytes} bytes; the limit is {MAX_TABLE_NBYTES}"))
        return
    try:
        archive.table = entry.read().decode("utf-8-sig")
    except (JobError, UnicodeDecodeError) as error:
        archive.faults.append(Fault(TABLE, "", f"not a text in UTF-8: {error}"))
