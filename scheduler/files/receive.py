"""Receive one output file: check who may upload it, write the bytes to disk, and move the whole file into the storage.

The use case is a generator of steps, so a client that sends slowly holds an open file and its lock, but neither a
thread nor a connection to the database.

An incoming file lies in ``settings.UPLOADS_DIR`` under its own name. Its length says how much has arrived, so a broken
upload goes on where it stopped. The writer holds a lock on it; a second upload of the same name is told to come later.
A whole file with the right MD5 goes into the default storage and never changes again. Its row says that it is here,
and the client is told so, only when it is on the storage's disk, whole.

Locks, in this order: the incoming file (never waited for), the workunit's row, the upload's row.

* The incoming file stays locked under its name until its row is complete. If it were moved away, the next upload would
  lock another file of the same name.
* With that lock, and for a moment with one on the workunit's row, the receiver checks that the file is still needed.
  From then on the file deleter leaves the workunit alone until the file's lock is free, so it sees whatever was stored.
* The upload's row is locked while the file goes into the storage. So two of them never do that at once, even if the
  file system's locks are of no use, and what a complete row names is never replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from credit.engine.states import FileDeleteState, Outcome, ServerState, WorkunitError
from credit.models import Result
from portal.clients.wants import Call, ReadBody, Steps
from scheduler.engine.outputs import split_upload_name
from scheduler.files import storage
from scheduler.files.certificates import is_certified
from scheduler.models import Upload
from scheduler.wire.uploads import REFUSED, TRY_AGAIN, FileUpload

CHUNK_NBYTES: Final = 256 * 1024
SPARE_NBYTES: Final = 64 * 1024 * 1024
"""Free space that uploads leave on their disk, and on that of the storage."""
_DISK_FULL: Final = "The disk of this project is full. Your client will try again."
_NOT_HERE: Final = "This file is not one that this project waits for."
_NOT_NEEDED: Final = "The task of this file is over: it is not needed any more."
_JUST_COMPLETED: Final = "The file has just been completed by another upload."
# Waits for a file deleter that has locked the workunit, and sees its changes.
_LOCK_WORKUNIT: Final = "SELECT file_delete_state FROM credit_workunit WHERE id = %s FOR SHARE"


class UploadError(Exception):
    """An upload that is not taken. ``status``: TRY_AGAIN or REFUSED."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Place:
    """A file that a result delivers: its result, its largest size, and the upload if there has been one."""

    result: Result
    max_nbytes: int
    upload: Upload | None


class _LinkedFile(File):  # type: ignore[type-arg]  # generic in the stubs alone: Django's File[...] fails at run time
    """A whole file and a second name of it, which the storage may take away: so nothing has to be copied."""

    def __init__(self, file: FileIO, link: Path) -> None:
        super().__init__(file, name=link.name)
        self._link = link

    def temporary_file_path(self) -> str:
        return str(self._link)


def received_nbytes(name: str) -> int:
    """How many bytes of the file have arrived. UploadError if no result delivers a file of this name.

    All of them only if the file is in the storage. A client that hears of as many bytes as the file has sends no more,
    and takes it for uploaded; so the last byte of one that is not stored yet has to come once more.
    """
    upload = _find(name).upload
    if upload is not None and upload.is_complete:
        return upload.nbytes
    path = _path(name)
    here = path.stat().st_size if path.exists() else 0
    return here if upload is None else min(here, max(upload.nbytes - 1, 0))


def receive(asked: FileUpload, start: bytes) -> Steps[None]:
    """Take the bytes of a file from ``asked.offset`` on: ``start``, and then the rest of the request's body.

    Returns when the whole file is in the storage, whether it came now or before. Raises UploadError. An OSError of a
    body that breaks off is passed on, and the bytes that arrived before stay.
    """
    incoming = _IncomingFile(asked)
    try:
        if not (yield incoming.call(incoming.begin)):
            return
        left = asked.nbytes - asked.offset
        try:
            while left and (chunk := start or (yield ReadBody(min(CHUNK_NBYTES, left)))):
                start = b""
                yield incoming.call(incoming.write, chunk)
                left -= len(chunk)
        except Exception as error:  # of whatever kind: what was received must be noted, so that a resumed upload fits
            yield incoming.call(incoming.note_nbytes)
            if isinstance(error, OSError) and error.errno in storage.FULL:
                raise UploadError(TRY_AGAIN, _DISK_FULL) from error
            raise
        yield incoming.call(incoming.end)
    finally:
        incoming.close()


class _IncomingFile:
    """An incoming file, locked from `begin` to `close`. All methods but `call` and `close` block."""

    def __init__(self, asked: FileUpload) -> None:
        self._asked = asked
        self._path = _path(asked.name)
        self._file: FileIO | None = None
        self._upload: Upload | None = None
        self._at_work = threading.Lock()
        self._is_over = False

    def call(self, function: Callable[..., object], *args: object) -> Call:
        return Call(partial(self._do, function, *args))

    def close(self) -> None:
        """Close the file: now or, if the request was cancelled, when the thread that works on it is done."""
        self._is_over = True
        if self._file is not None and self._at_work.acquire(blocking=False):
            self._file.close()
            self._at_work.release()

    def _do(self, function: Callable[..., object], *args: object) -> object:
        try:
            with self._at_work:
                return function(*args)
        finally:
            if self._is_over:
                self.close()

    def begin(self) -> bool:
        """Whether bytes are still wanted; False if the file is whole already."""
        asked = self._asked
        place = _find(asked.name)
        _check(place, asked)
        if place.upload is not None and place.upload.is_complete:
            if (place.upload.md5, place.upload.nbytes) != (asked.md5, asked.nbytes):
                raise UploadError(REFUSED, "Another file has been uploaded under this name.")
            tidy(asked.name)
            return False
        self._file = file = _open(self._path)
        _lock(self._path, file)
        self._upload = _note_start(place, asked, file)
        if self._upload is None:
            self._path.unlink(missing_ok=True)
            raise UploadError(REFUSED, _NOT_NEEDED)
        _check_room(asked)
        file.truncate(asked.offset)
        file.seek(asked.offset)
        return True

    def write(self, chunk: bytes) -> None:
        assert self._file is not None
        rest = memoryview(chunk)
        while rest:
            rest = rest[self._file.write(rest) :]

    def note_nbytes(self) -> int:
        """Note in the row how much has arrived."""
        assert self._file is not None and self._upload is not None
        nbytes = os.fstat(self._file.fileno()).st_size
        Upload.objects.filter(pk=self._upload.pk).update(received_nbytes=nbytes)
        return nbytes

    def end(self) -> None:
        """The body has ended: move the file into the storage if it is whole."""
        assert self._file is not None and self._upload is not None
        if self.note_nbytes() < self._asked.nbytes:
            raise UploadError(TRY_AGAIN, "The upload ended before the file did.")
        _check_md5(self._upload, self._asked, self._file)
        try:
            _store(self._upload, self._file)
        except OSError as error:
            if error.errno in storage.FULL:
                raise UploadError(TRY_AGAIN, _DISK_FULL) from error
            raise


def _find(name: str) -> _Place:
    parts = split_upload_name(name)
    if parts is None:
        raise UploadError(REFUSED, _NOT_HERE)
    result = Result.objects.filter(name=parts[0]).select_related("workunit").first()
    if result is None or result.server_state == ServerState.UNSENT or parts[1] >= len(result.workunit.output_files):
        raise UploadError(REFUSED, _NOT_HERE)
    max_nbytes = int(result.workunit.output_files[parts[1]]["max_nbytes"])
    return _Place(result, max_nbytes, Upload.objects.filter(name=name).first())


def _check(place: _Place, asked: FileUpload) -> None:
    if not is_certified(asked.name, asked.max_nbytes, asked.certificate):
        raise UploadError(REFUSED, "The certificate of this file is not one of this project's.")
    if asked.nbytes > min(asked.max_nbytes, place.max_nbytes):
        raise UploadError(
            REFUSED, f"The file has {asked.nbytes} bytes; the limit is {min(asked.max_nbytes, place.max_nbytes)}."
        )
    if not (place.upload is not None and place.upload.is_complete) and not _is_wanted(place.result):
        raise UploadError(REFUSED, _NOT_NEEDED)


def _is_wanted(result: Result) -> bool:
    """Whether the result is in progress, or is late or was given up but can still count."""
    if result.workunit.error_mask & WorkunitError.CANCELLED:
        return False
    if result.server_state == ServerState.IN_PROGRESS:
        return True
    can_count = result.file_delete_state == result.workunit.file_delete_state == FileDeleteState.INIT
    return result.outcome in (Outcome.NO_REPLY, Outcome.CLIENT_DETACHED) and can_count


def discard(name: str) -> bool:
    """Delete a file that was never completed, and the part that a server that died may have stored.

    False, and nothing is deleted, while it is being uploaded.
    """
    path = _path(name)
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            default_storage.delete(_stored_path(name))
            tidy(name)
    except FileNotFoundError:
        default_storage.delete(_stored_path(name))
    except BlockingIOError:
        return False
    return True


def tidy(name: str) -> None:
    """Remove the incoming file of a complete upload, which a server leaves that dies just then."""
    path = _path(name)
    _link_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _path(name: str) -> Path:
    """The path of an incoming file. Its name has no slash, because `_find` checked it; few files share a folder."""
    return Path(settings.UPLOADS_DIR) / _shard(name) / name


def _link_path(path: Path) -> Path:
    """The second name of an incoming file. No upload has this one, as those end with a number."""
    return path.with_name(f"{path.name}.whole")


def _stored_path(name: str) -> str:
    """Where the default storage is to keep it."""
    return f"outputs/{_shard(name)}/{name}"


def _shard(name: str) -> str:
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:2]


def _open(path: Path) -> FileIO:
    """Open for reading and writing, without a buffer, so that nothing is lost when the file is closed at once."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")


def _lock(path: Path, file: FileIO) -> None:
    """Lock the file until it is closed. UploadError if another upload has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_same = os.fstat(file.fileno()).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        is_same = False
    if not is_same:
        raise UploadError(TRY_AGAIN, "Another upload of this file is going on.")


def _check_room(asked: FileUpload) -> None:
    """UploadError if the file does not fit on the disk of the incoming files, or on that of the storage."""
    uploads, kept = Path(settings.UPLOADS_DIR), storage.folder()
    needed = {uploads: asked.nbytes - asked.offset}
    if kept is not None and kept.stat().st_dev != uploads.stat().st_dev:
        needed[kept] = asked.nbytes  # it will be copied there
    if any(shutil.disk_usage(folder).free < nbytes + SPARE_NBYTES for folder, nbytes in needed.items()):
        raise UploadError(TRY_AGAIN, _DISK_FULL)


def _note_start(place: _Place, asked: FileUpload, file: FileIO) -> Upload | None:
    """The upload's row; None if the file has ceased to be needed since `_find`.

    What arrived before under the same name with other content is dropped, as it was never whole.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_LOCK_WORKUNIT, [place.result.workunit_id])
            state = cursor.fetchone()
        if state is None or state[0] != FileDeleteState.INIT:
            return None
        upload = Upload.objects.select_for_update().filter(name=asked.name).first()
        if upload is not None and upload.is_complete:
            tidy(asked.name)  # made just now, by us
            raise UploadError(TRY_AGAIN, _JUST_COMPLETED)
        if upload is None:
            upload = Upload.objects.create(result=place.result, name=asked.name, nbytes=asked.nbytes, md5=asked.md5)
        elif (upload.md5, upload.nbytes) != (asked.md5, asked.nbytes):
            file.truncate(0)
            upload.md5, upload.nbytes, upload.received_nbytes = asked.md5, asked.nbytes, 0
            upload.save(update_fields=["md5", "nbytes", "received_nbytes"])
    here = os.fstat(file.fileno()).st_size
    if asked.offset > here:
        raise UploadError(TRY_AGAIN, f"The upload begins at byte {asked.offset}, but only {here} bytes are here.")
    return upload


def _check_md5(upload: Upload, asked: FileUpload, file: FileIO) -> None:
    file.seek(0)
    if hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() == asked.md5:
        return
    file.truncate(0)
    Upload.objects.filter(pk=upload.pk).update(received_nbytes=0)
    if asked.offset:
        # A part that came before may be at fault, so the client starts again.
        raise UploadError(TRY_AGAIN, "The parts do not make up the file with the announced MD5. Please send it anew.")
    raise UploadError(REFUSED, "The file does not have the announced MD5.")


def _store(upload: Upload, file: FileIO) -> None:
    """Put the file into the storage, then note it in the row. After a crash in between it is uploaded once more."""
    path = _path(upload.name)
    content = storage.Content(upload.nbytes, upload.md5)
    with transaction.atomic():
        now = Upload.objects.select_for_update().filter(pk=upload.pk).first()
        if now is None:
            raise UploadError(REFUSED, _NOT_NEEDED)
        if now.is_complete or (now.nbytes, now.md5) != content:
            raise UploadError(TRY_AGAIN, _JUST_COMPLETED)
        with _offered(path, file) as offered:
            saved = storage.keep(_stored_path(upload.name), offered, content)
        Upload.objects.filter(pk=upload.pk).update(path=saved, completed_at=timezone.now())
    path.unlink(missing_ok=True)


@contextmanager
def _offered(path: Path, file: FileIO) -> Iterator[File[bytes]]:
    """The whole file for the storage: by a second name on the same disk, else to be copied.

    Django would copy a file that it is given by name without noticing that the other disk is full.
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
