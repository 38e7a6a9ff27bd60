"""ZIP archives of input files, which anybody may have made: read with limits, and never unpacked into a folder.

An entry's name is only a text by which jobs name it. An archive's own statements are not trusted: its directory is read
up to a limit, each entry up to the size it claims, and sizes are added up before anything is unpacked.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Final

from portal.languages.messages import Message
from scheduler.wire.job_fields import JobError, KeptContent
from scheduler.wire.job_table import MAX_TABLE_NBYTES, Fault

MAX_ENTRIES: Final = 10_000
MAX_DIRECTORY_NBYTES: Final = 2 * 1024 * 1024
"""The limit for the list of entries: zipfile reads all of it, and a million entries would take gigabytes of memory."""
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
    OverflowError,  # an offset beyond what any file system allows
)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A file of an open archive: a `KeptContent`."""

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
            raise JobError("input_files", Message("archive_input_damaged", name=name, reason=error)) from error

    def check(self) -> Message | None:
        """Return what is wrong with its content; None if nothing is."""
        try:
            with self.archive.open(self.info) as content:
                while content.read(_PART_NBYTES):
                    pass
        except _DAMAGED as error:
            return Message("archive_entry_damaged", reason=error)
        return None


@dataclass(slots=True)
class Archive:
    """The content of an archive.

    ``files``: by their paths in it, without the table; ``table``: the text of jobs.csv.
    """

    files: dict[str, KeptContent] = field(default_factory=dict)
    table: str | None = None
    faults: list[Fault] = field(default_factory=list)


class _Bounded:
    """A file from which no more is read at once than an archive's directory may have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable, self.close = file.seek, file.tell, file.seekable, file.close

    def read(self, nbytes: int = -1) -> bytes:
        # Without a number, all the rest is requested: the end of the archive.
        data = self._file.read(nbytes if 0 <= nbytes <= MAX_DIRECTORY_NBYTES else MAX_DIRECTORY_NBYTES + 1)
        if len(data) > MAX_DIRECTORY_NBYTES:
            raise zipfile.BadZipFile(f"the list of its files has more than {MAX_DIRECTORY_NBYTES} bytes")
        return data


@contextmanager
def opened(file: IO[bytes]) -> Iterator[Archive]:
    """Open an archive, whose entries may be read inside the block."""
    bounded: Any = _Bounded(file)
    try:
        packed = zipfile.ZipFile(bounded)
    except _DAMAGED as error:
        yield Archive(faults=[Fault("", "", Message("archive_unreadable", reason=error))])
        return
    with packed:
        yield _read(packed)


def _read(packed: zipfile.ZipFile) -> Archive:
    archive = Archive()
    # Not is_dir(), which fails for an empty name.
    entries = [info for info in packed.infolist() if not info.filename.endswith("/")]
    total = sum(info.file_size for info in entries)
    if len(entries) > MAX_ENTRIES:
        archive.faults.append(Fault("", "", Message("archive_files_limit", number=len(entries), most=MAX_ENTRIES)))
    elif total > MAX_UNPACKED_NBYTES:
        message = Message("archive_unpacked_limit", nbytes=total, most_nbytes=MAX_UNPACKED_NBYTES)
        archive.faults.append(Fault("", "", message))
    if archive.faults:
        return archive
    for info in entries:
        if (wrong := _fault(info)) is not None:
            archive.faults.append(Fault(ascii(info.filename[:MAX_PATH_CHARS])[1:-1], "", wrong))
        elif info.filename in archive.files:
            archive.faults.append(Fault(info.filename, "", Message("archive_twice")))
        else:
            archive.files[info.filename] = Entry(packed, info)
    if TABLE in archive.files:
        _take_table(archive)
    return archive


def _fault(info: zipfile.ZipInfo) -> Message | None:
    mode = info.external_attr >> 16
    path = info.filename
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return Message("archive_link")
    if info.flag_bits & 0x1:
        return Message("archive_encrypted")
    # zipfile unpacks the others without a limit.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return Message("archive_method")
    if len(path) > MAX_PATH_CHARS or not path.isprintable() or any(blank in path for blank in " \\:"):
        return Message("archive_path", number=MAX_PATH_CHARS)
    if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
        return Message("archive_path_outside")
    if info.file_size > MAX_ENTRY_NBYTES:
        return Message("file_limit", nbytes=info.file_size, most_nbytes=MAX_ENTRY_NBYTES)
    return None


def _take_table(archive: Archive) -> None:
    entry = archive.files.pop(TABLE)
    if entry.nbytes > MAX_TABLE_NBYTES:
        archive.faults.append(
            Fault(TABLE, "", Message("file_limit", nbytes=entry.nbytes, most_nbytes=MAX_TABLE_NBYTES))
        )
        return
    try:
        archive.table = entry.read().decode("utf-8-sig")
    except (JobError, UnicodeDecodeError) as error:
        archive.faults.append(Fault(TABLE, "", Message("no_utf8", reason=error)))
