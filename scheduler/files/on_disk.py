"""Incoming files on a disk that all web servers share.

An incoming file lies in ``settings.UPLOADS_DIR`` under its own name. Its length says how much has arrived, so a broken
upload goes on where it stopped. The writer holds a lock on it; a second upload of the same name is told to come later.

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
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from scheduler.files import storage, uploads
from scheduler.files.uploads import Incoming, Place, UploadError
from scheduler.models import Upload
from scheduler.wire.uploads import REFUSED, TRY_AGAIN, FileUpload

SPARE_NBYTES: Final = 64 * 1024 * 1024
"""Free space that uploads leave on their disk, and on that of the storage."""


class _LinkedFile(File):  # type: ignore[type-arg]  # generic in the stubs alone: Django's File[...] fails at run time
    """A whole file and a second name of it, which the storage may take away: so nothing has to be copied."""

    def __init__(self, file: FileIO, link: Path) -> None:
        super().__init__(file, name=link.name)
        self._link = link

    def temporary_file_path(self) -> str:
        return str(self._link)


class IncomingFile(Incoming):
    """A file that is locked while it is open."""

    def __init__(self, asked: FileUpload) -> None:
        super().__init__(asked)
        self._path = _path(asked.name)
        self._file: FileIO | None = None
        self._upload: Upload | None = None

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()

    def begin(self) -> bool:
        asked = self._asked
        place = uploads.find_asked(asked)
        if uploads.is_here(place, asked):
            tidy(asked.name)
            return False
        self._file = file = _open(self._path)
        _lock(self._path, file)
        self._upload = _note_start(place, asked, file)
        if self._upload is None:
            self._path.unlink(missing_ok=True)
            raise UploadError(REFUSED, uploads.NOT_NEEDED)
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
        assert self._file is not None and self._upload is not None
        nbytes = os.fstat(self._file.fileno()).st_size
        Upload.objects.filter(pk=self._upload.pk).update(received_nbytes=nbytes)
        return nbytes

    def end(self) -> None:
        assert self._file is not None and self._upload is not None
        if self.note_nbytes() < self._asked.nbytes:
            raise UploadError(TRY_AGAIN, "The upload ended before the file did.")
        _check_md5(self._upload, self._asked, self._file)
        try:
            _store(self._upload, self._file)
        except OSError as error:
            if error.errno in storage.FULL:
                raise UploadError(TRY_AGAIN, uploads.DISK_FULL) from error
            raise


def received_nbytes(name: str) -> int:
    """How much of a file that is not complete has arrived."""
    path = _path(name)
    return path.stat().st_size if path.exists() else 0


def discard(name: str) -> bool:
    """Delete a file that was never completed, and the part that a server that died may have stored.

    False, and nothing is deleted, while it is being uploaded.
    """
    path = _path(name)
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            default_storage.delete(uploads.stored_path(name))
            tidy(name)
    except FileNotFoundError:
        default_storage.delete(uploads.stored_path(name))
    except BlockingIOError:
        return False
    return True


def tidy(name: str) -> None:
    """Remove the incoming file of a complete upload, which a server leaves that dies just then."""
    path = _path(name)
    _link_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def _path(name: str) -> Path:
    """The path of an incoming file. Its name has no slash: `uploads.find` checked it. Few files share a folder."""
    return Path(settings.UPLOADS_DIR) / uploads.shard(name) / name


def _link_path(path: Path) -> Path:
    """The second name of an incoming file. No upload has this one, as those end with a number."""
    return path.with_name(f"{path.name}.whole")


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
        raise UploadError(TRY_AGAIN, uploads.GOING_ON)


def _check_room(asked: FileUpload) -> None:
    """UploadError if the file does not fit on the disk of the incoming files, or on that of the storage."""
    here, kept = Path(settings.UPLOADS_DIR), storage.folder()
    needed = {here: asked.nbytes - asked.offset}
    if kept is not None and kept.stat().st_dev != here.stat().st_dev:
        needed[kept] = asked.nbytes  # it will be copied there
    if any(shutil.disk_usage(folder).free < nbytes + SPARE_NBYTES for folder, nbytes in needed.items()):
        raise UploadError(TRY_AGAIN, uploads.DISK_FULL)


def _note_start(place: Place, asked: FileUpload, file: FileIO) -> Upload | None:
    """The upload's row; None if the file has ceased to be needed since `uploads.find`.

    What arrived before under the same name with other content is dropped, as it was never whole.
    """
    with transaction.atomic():
        if not uploads.is_needed_and_locked(place):
            return None
        upload = Upload.objects.select_for_update().filter(name=asked.name).first()
        if upload is not None and upload.is_complete:
            tidy(asked.name)  # made just now, by us
            raise UploadError(TRY_AGAIN, uploads.JUST_COMPLETED)
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
        raise UploadError(TRY_AGAIN, uploads.SEND_ANEW)
    raise UploadError(REFUSED, uploads.WRONG_MD5)


def _store(upload: Upload, file: FileIO) -> None:
    """Put the file into the storage, then note it in the row. After a crash in between it is uploaded once more."""
    path = _path(upload.name)
    content = storage.Content(upload.nbytes, upload.md5)
    with transaction.atomic():
        now = Upload.objects.select_for_update().filter(pk=upload.pk).first()
        if now is None:
            raise UploadError(REFUSED, uploads.NOT_NEEDED)
        if now.is_complete or (now.nbytes, now.md5) != content:
            raise UploadError(TRY_AGAIN, uploads.JUST_COMPLETED)
        with _offered(path, file) as offered:
            saved = storage.keep(uploads.stored_path(upload.name), offered, content)
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
