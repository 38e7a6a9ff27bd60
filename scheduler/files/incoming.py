"""An output file while it arrives: on this server's disk, below ``settings.UPLOADS_DIR``, under its own name.

Its length says how much has arrived, so an interrupted upload continues where it stopped, if it comes to the same
server: nginx ensures that. At another server a client finds nothing of it, and starts again.

* The writer holds a lock on the file; a second upload of the same name at this server is told to retry later. The file
  stays locked under its name until its row is complete. If it were moved away, the next upload would lock another file.
* The row of the upload is written with that lock held, and before anything in the file changes: if a server died after
  it had stored the file, this may be the storage's own file, by a second name.
* The storage gets the file under a unique name, while no transaction is open. A `PendingFile` names it until the
  upload's row does: in the transaction that checks that the workunit's files are still needed. So of two servers, or of
  a server and the file deleter, neither touches what the other stored, and unneeded files are always known
  (`scheduler.files.leftovers`).
* Packed outputs are unpacked before they are stored, so that code that compares or takes outputs need not know of it.

Locks, in this order: the incoming file (never waited for), the rows of the pending file, the workunit, the upload.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.files import File
from django.db import connection, transaction
from django.utils import timezone

from portal.clients.effects import Call, Value
from portal.object_storage import storage
from scheduler.files import sql, uploads
from scheduler.files.unpacking import UnpackedFile, unpack
from scheduler.files.uploads import ExpectedOutput, UploadError
from scheduler.models import PendingFile, Upload
from scheduler.wire.uploads import REFUSED, TRY_AGAIN, FileUpload

SPARE_NBYTES: Final = 64 * 1024 * 1024
"""Free space that uploads leave on their own disk and on the storage's."""
_DAY_SECS: Final = 86_400


class _LinkedFile(File):  # type: ignore[type-arg]  # generic in the stubs alone: Django's File[...] fails at run time
    """A complete file and a second name of it, which the storage may take over: so nothing has to be copied."""

    def __init__(self, file: FileIO, link: Path) -> None:
        super().__init__(file, name=link.name)
        self._link = link

    def temporary_file_path(self) -> str:
        return str(self._link)


class IncomingFile:
    """The file of one request, locked while it is open. All methods except `call` and `close` block."""

    def __init__(self, asked: FileUpload) -> None:
        self._asked = asked
        self._file: FileIO | None = None
        self._expected: ExpectedOutput | None = None
        self._pending: PendingFile | None = None
        self._plain: UnpackedFile | None = None
        self._at_work = threading.Lock()
        self._is_over = False

    @property
    def _path(self) -> Path:
        return path(self._asked.name)

    def call(self, function: Callable[..., Value], *args: object) -> Call[Value]:
        """Return a call of one of the methods below, for a thread."""
        return Call(partial(self._do, function, *args))

    def close(self) -> None:
        """Close the file: now or, if the request was cancelled, when the thread that works on it is done."""
        self._is_over = True
        if self._at_work.acquire(blocking=False):
            if self._file is not None:
                self._file.close()
            if self._plain is not None:
                self._plain.remove()
            self._at_work.release()

    def _do(self, function: Callable[..., Value], *args: object) -> Value:
        try:
            with self._at_work:
                return function(*args)
        finally:
            if self._is_over:
                self.close()

    def begin(self) -> bool:
        """Whether more bytes are needed; False if the file is complete. UploadError if they are not accepted."""
        self._expected, self._asked = expected, asked = uploads.find_asked(self._asked)
        if uploads.is_here(expected, asked):
            _remove(self._path)  # left by a server that died at that moment
            return False
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        delete_abandoned(self._path.parent)
        self._file = file = open_file(self._path)
        lock_file(self._path, file)
        if not _note(expected, asked):
            _remove(self._path)
            raise UploadError(TRY_AGAIN, uploads.JUST_OVER)
        if expected.upload is not None and expected.upload.as_sent != (asked.nbytes, asked.md5):
            file.truncate(0)  # it never became complete
        here = os.fstat(file.fileno()).st_size
        if asked.offset > here:
            raise UploadError(TRY_AGAIN, f"The upload starts at byte {asked.offset}, but only {here} bytes are here.")
        _check_room(asked)
        file.truncate(asked.offset)
        file.seek(asked.offset)
        return True

    def write(self, chunk: bytes) -> None:
        """Write the next bytes."""
        assert self._file is not None
        rest = memoryview(chunk)
        while rest:
            rest = rest[self._file.write(rest) :]

    def check(self) -> None:
        """Check the file at the end of the body: UploadError if it is incomplete, or differs from the announced one."""
        assert self._file is not None
        asked, file = self._asked, self._file
        if os.fstat(file.fileno()).st_size < asked.nbytes:
            raise UploadError(TRY_AGAIN, "The upload ended before the file did.")
        file.seek(0)
        if hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() != asked.md5:
            file.truncate(0)
            if asked.offset:
                # An earlier part may be at fault, so the client starts again.
                raise UploadError(TRY_AGAIN, uploads.SEND_AGAIN)
            raise UploadError(REFUSED, uploads.WRONG_MD5)
        if self._expected is not None and self._expected.is_packed:
            self._plain = unpack(file, self._path, self._expected.max_nbytes, check_spare)
        where = f"{uploads.stored_path(asked.name)}.{secrets.token_hex(8)}"
        self._pending = PendingFile.objects.create(path=where)

    def store(self) -> None:
        """Put the file into the storage, which may take long: no database connection is used meanwhile."""
        assert self._file is not None and self._pending is not None
        path, file, content = self._path, self._file, storage.ContentDigest(self._asked.nbytes, self._asked.md5)
        if self._plain is not None:
            path, file, content = self._plain.path, self._plain.file, self._plain.content
        with offered_file(path, file) as offered:
            storage.keep(self._pending.path, offered, content)

    def complete(self) -> None:
        """Mark the file as arrived in its row. UploadError if it, or this version of it, is no longer needed."""
        assert self._expected is not None and self._pending is not None
        asked, pending = self._asked, self._pending
        with transaction.atomic(), connection.cursor() as cursor:
            is_there, _ = PendingFile.objects.filter(pk=pending.pk).delete()
            cursor.execute(sql.LOCK_WORKUNIT, [self._expected.result.workunit_id])
            is_needed = cursor.fetchone() is not None
            announced = Upload.objects.filter(name=asked.name, md5=asked.md5, nbytes=asked.nbytes, completed_at=None)
            here: dict[str, Any] = {"path": pending.path, "completed_at": timezone.now()}
            if self._plain is not None:
                plain = self._plain.content
                here |= {"nbytes": plain.nbytes, "md5": plain.md5}
                here |= {"sent_nbytes": asked.nbytes, "sent_md5": asked.md5}
            is_done = is_there and is_needed and announced.update(**here)
            if not is_done:
                transaction.set_rollback(True)  # so that it stays recorded as unused
        if not is_there:
            storage.forget([pending.path])  # it took so long that it counted as abandoned
        if not is_needed:
            _remove(self._path)
            raise UploadError(REFUSED, uploads.NOT_NEEDED)
        if not is_done:
            raise UploadError(TRY_AGAIN, uploads.JUST_OVER)
        _remove(self._path)


def received_nbytes(name: str) -> int:
    """Return how much of an incomplete file has arrived at this server."""
    try:
        return path(name).stat().st_size
    except FileNotFoundError:
        return 0


def path(name: str) -> Path:
    """Return the path of an incoming file.

    Its name has no slash: `uploads.find` checked it. Few files share a folder.
    """
    return Path(settings.UPLOADS_DIR) / uploads.shard(name) / name


def _link_path(path: Path) -> Path:
    """Return the second name of an incoming file. No upload has this name, because those end with a number."""
    return path.with_name(f"{path.name}.whole")


def _remove(path: Path) -> None:
    _link_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def open_file(path: Path) -> FileIO:
    """Open for reading and writing, unbuffered, so that nothing is lost if the file is closed at once."""
    return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")


def lock_file(path: Path, file: FileIO) -> None:
    """Lock the file until it is closed. UploadError if another upload has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_same = os.fstat(file.fileno()).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        is_same = False
    if not is_same:
        raise UploadError(TRY_AGAIN, uploads.GOING_ON)


def delete_abandoned(folder: Path) -> None:
    """Delete the files in it that are no longer being uploaded.

    Each upload checks one folder, so this takes no time.
    """
    before = time.time() - settings.UPLOADS_KEPT_DAYS * _DAY_SECS
    for path in folder.iterdir():
        # Another upload may just have deleted it, or be doing so.
        with suppress(FileNotFoundError, BlockingIOError):
            if path.stat().st_mtime < before:
                with path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


def _note(expected: ExpectedOutput, asked: FileUpload) -> bool:
    """Record the announced file in the upload's row; False if the file is now complete or not needed."""
    announced: dict[str, str | int] = {
        "result": expected.result.pk,
        "workunit": expected.result.workunit_id,
        "name": asked.name,
        "nbytes": asked.nbytes,
        "md5": asked.md5,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.BEGIN, announced)
        return bool(cursor.rowcount)


def _check_room(asked: FileUpload) -> None:
    """Check the free space. UploadError if the file does not fit on the disk of incoming files, or the storage's."""
    uploads_dir, storage_dir = Path(settings.UPLOADS_DIR), storage.folder()
    needed = {uploads_dir: asked.nbytes - asked.offset}
    if storage_dir is not None and storage_dir.stat().st_dev != uploads_dir.stat().st_dev:
        needed[storage_dir] = asked.nbytes  # it will be copied there
    if any(shutil.disk_usage(folder).free < nbytes + SPARE_NBYTES for folder, nbytes in needed.items()):
        raise UploadError(TRY_AGAIN, uploads.DISK_FULL)


def check_spare() -> None:
    if shutil.disk_usage(settings.UPLOADS_DIR).free < SPARE_NBYTES:
        raise UploadError(TRY_AGAIN, uploads.DISK_FULL)


@contextmanager
def offered_file(path: Path, file: FileIO) -> Iterator[File[bytes]]:
    """Yield the complete file for the storage: by a second name on the same disk, else to be copied.

    Django would copy a file that is given by name without noticing that the other disk is full.
    """
    kept, link = storage.folder(), _link_path(path)
    if kept is None or kept.stat().st_dev != path.stat().st_dev:
        yield File(file)
        return
    link.unlink(missing_ok=True)  # a server that died may have left it
    link.hardlink_to(path)
    try:
        yield _LinkedFile(file, link)
    finally:
        link.unlink(missing_ok=True)
