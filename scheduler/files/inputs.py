"""Inputs that submitters upload over the REST API: announced, sent in pieces that may be interrupted, then stored.

The part of a file that has arrived lies in ``settings.UPLOADS_DIR/inputs`` of one web server, and its length says how
much that is. Memory holds a chunk of it, however long the file is. An interrupted piece keeps what has arrived. The
last step reads the whole file twice, once for its MD5 and once to compare it with the storage's copy. It may outlast
the request: a request that comes meanwhile is told so, and a later one that the file is stored.

Locks: the file on the disk (never waited for); the owner's account and then the upload when a file is announced; the
rows of the pending file, the upload and the stored file at the end.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import IntegrityError, connection, transaction
from django.db.models import PROTECT, Sum
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.utils import timezone

from credit.models import App, Workunit
from portal.models import User
from portal.object_storage import storage
from scheduler.engine.limits import is_made_up, job_of_output
from scheduler.files import incoming, sql, uploads
from scheduler.files.uploads import UploadError
from scheduler.models import InputUpload, PendingFile, StoredFile

MAX_PIECE_NBYTES: Final = 64 * 1024 * 1024
MAX_FILES: Final = 100_000
"""The limit for one person."""
CHUNK_NBYTES: Final = 256 * 1024
_NOT_YOURS: Final = "Somebody else is uploading a file under this name. Choose another one."
_CHANGED: Final = "The file was deleted or announced differently in the meantime."
_MD5_NAME: Final = re.compile(r"jf_([0-9a-f]{32})")
"""Programs for BOINC's server name files after their MD5, and assume that an existing one is theirs."""


class InputError(Exception):
    """An invalid request: ``field`` and a sentence."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


class InputConflict(InputError):
    """The request conflicts with the current state."""


@transaction.atomic
def announce(owner: User, name: str, nbytes: int, md5: str, now: dt.datetime) -> tuple[InputUpload, bool]:
    """Return the upload with this name, and whether it is new.

    Safe to repeat; a new size or MD5 restarts an unfinished one. Raises InputError.
    """
    if nbytes > settings.INPUT_FILE_MAX_BYTES:
        raise InputError("nbytes", f"{nbytes} bytes; the limit is {settings.INPUT_FILE_MAX_BYTES}.")
    named = _MD5_NAME.fullmatch(name)
    if reserved([name]) or (named is not None and named[1] != md5):
        raise InputError("name", "Only the site's own files have such names. Choose another name.")
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    lifetime = dt.timedelta(days=settings.UPLOADS_KEPT_DAYS)
    InputUpload.objects.filter(file=None, continued_at__lt=now - lifetime).delete()
    # Locked first: if it is just being stored, what is read next is the stored file.
    upload = InputUpload.objects.select_for_update(no_key=True, of=("self",)).filter(name=name).first()
    stored = StoredFile.objects.filter(name=name).first()
    is_same = stored is None or (stored.md5, stored.nbytes, stored.batch_id) == (md5, nbytes, None)
    if stored is not None and (not is_same or stored.signature):
        raise InputConflict("name", "Another file was stored under this name. Names are used once: choose another one.")
    if upload is not None and upload.owner_id != owner.pk:
        raise InputConflict("name", _NOT_YOURS)
    if upload is None and stored is not None and stored.deleted_at is None:
        # It must not become the requester's, who could then delete it.
        raise InputConflict("name", "Somebody else has already stored this file. Your jobs can name it.")
    _check_quota(owner, nbytes, upload)
    if upload is not None and (upload.nbytes, upload.md5) != (nbytes, md5):
        _path(upload).unlink(missing_ok=True)  # it would no longer count towards the owner's limit
    values = {"nbytes": nbytes, "md5": md5, "continued_at": now}
    if upload is not None:
        InputUpload.objects.filter(pk=upload.pk).update(**values)
        upload.refresh_from_db()
        return upload, False
    try:
        with transaction.atomic():
            return InputUpload.objects.create(owner=owner, name=name, **values), True
    except IntegrityError as error:
        # Somebody announced it at the same moment.
        raise InputConflict("name", _NOT_YOURS) from error


def reserved(names: Collection[str]) -> set[str]:
    """Return those names that the site itself uses: for outputs, and files of batches, images, other servers."""
    jobs = {name: job for name in names if (job := job_of_output(name)) is not None}
    apps = "|".join(map(re.escape, App.objects.values_list("name", flat=True))) if jobs else ""
    used = set(Workunit.objects.filter(name__in=jobs.values()).values_list("name", flat=True)) if jobs else set()
    of_apps = re.compile(rf"(?:{apps})_[0-9]+_")
    outputs = {name for name, job in jobs.items() if job in used or of_apps.match(job)}
    return outputs.union(filter(is_made_up, names))


def _check_quota(owner: User, nbytes: int, before: InputUpload | None) -> None:
    files = InputUpload.objects.filter(owner=owner).exclude(pk=before.pk if before is not None else 0)
    if files.count() >= MAX_FILES:
        raise InputError("name", f"You have reached the limit of {MAX_FILES} files; delete some.")
    total, most = (files.aggregate(total=Sum("nbytes"))["total"] or 0) + nbytes, settings.INPUT_FILES_MAX_BYTES
    if total > most:
        raise InputError("nbytes", f"Your files would take up {total} bytes; the limit is {most}. Delete some.")


def received_nbytes(upload: InputUpload) -> int:
    """Return how much has arrived at this server."""
    if upload.file_id is not None:
        return upload.nbytes
    try:
        return min(_path(upload).stat().st_size, upload.nbytes)
    except FileNotFoundError:
        return 0


def receive(upload: InputUpload, offset: int, nbytes: int, read: Callable[[int], bytes]) -> InputUpload:
    """Receive a piece of ``nbytes`` starting at ``offset``, and store the file after the last one.

    Safe to repeat: bytes that are here already are skipped. Raises InputError.
    """
    if upload.file_id is not None:
        return upload
    if offset + nbytes > upload.nbytes:
        raise InputError("Upload-Offset", f"The piece would end at byte {offset + nbytes} of {upload.nbytes}.")
    with _locked(upload) as file:
        if InputUpload.objects.filter(pk=upload.pk, file__isnull=False).exists():
            # By another request, before this one had the lock.
            _path(upload).unlink(missing_ok=True)
            upload.refresh_from_db()
            return upload
        here = os.fstat(file.fileno()).st_size
        if offset > here or (offset < here and offset + nbytes > here):
            raise InputConflict("Upload-Offset", f"{here} bytes are here: continue there.")
        _check_room(upload, here)
        if offset == here:
            file.seek(here)
            _write(file, nbytes, read)
        same = InputUpload.objects.filter(pk=upload.pk, md5=upload.md5, nbytes=upload.nbytes)
        if not same.update(continued_at=timezone.now()):
            with suppress(FileNotFoundError):
                if _path(upload).stat().st_ino == os.fstat(file.fileno()).st_ino:
                    _path(upload).unlink()
            raise InputConflict("name", _CHANGED)
        if os.fstat(file.fileno()).st_size == upload.nbytes:
            _store(upload, file)
            _path(upload).unlink(missing_ok=True)
    try:
        upload.refresh_from_db()
    except InputUpload.DoesNotExist as error:
        raise InputConflict("name", _CHANGED) from error
    return upload


def _write(file: FileIO, nbytes: int, read: Callable[[int], bytes]) -> None:
    while nbytes and (chunk := read(min(CHUNK_NBYTES, nbytes))):
        nbytes -= len(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[file.write(rest) :]


def _store(upload: InputUpload, file: FileIO) -> None:
    content = _digest(file)
    if content.md5 != upload.md5:
        file.truncate(0)
        raise InputError("md5", f"The uploaded file has the MD5 {content.md5}. It was deleted: send it again.")
    where = f"files/{uploads.shard(upload.name)}/{upload.name}.{secrets.token_hex(8)}"
    pending = PendingFile.objects.create(path=where)
    # Takes long, so no transaction is open meanwhile.
    try:
        with incoming.offered_file(_path(upload), file) as offered:
            storage.keep(where, offered, content)
    except FileNotFoundError as error:
        raise InputConflict("name", _CHANGED) from error
    with transaction.atomic():
        is_there, _ = PendingFile.objects.filter(pk=pending.pk).delete()
        announced = InputUpload.objects.filter(pk=upload.pk, md5=upload.md5, nbytes=upload.nbytes, file=None)
        values = {"path": where, "nbytes": content.nbytes, "md5": content.md5}
        stored, is_new = StoredFile.objects.get_or_create(name=upload.name, defaults=values)
        stored = StoredFile.objects.select_for_update(no_key=True, of=("self",)).get(pk=stored.pk)
        is_same = (stored.md5, stored.nbytes, stored.batch_id) == (content.md5, content.nbytes, None)
        # A file that somebody else stored meanwhile, such as a program, does not become the uploader's, who could
        # delete it.
        is_ours = is_same and not stored.signature and (is_new or stored.deleted_at is not None)
        is_done = bool(is_there and is_ours and announced.update(file=stored))
        if is_done and stored.deleted_at is not None:
            stored.path, stored.deleted_at = where, None
            stored.save(update_fields=["path", "deleted_at"])
        if not is_done or stored.path != where:
            # The pending file keeps naming a file that nobody needs.
            PendingFile.objects.get_or_create(path=where)
        if not is_done and is_new:
            stored.delete()
    if not is_done:
        raise InputConflict("name", _CHANGED)


def _digest(file: FileIO) -> storage.ContentDigest:
    file.seek(0)
    md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    return storage.ContentDigest(os.fstat(file.fileno()).st_size, md5)


@transaction.atomic
def delete(upload: InputUpload, now: dt.datetime) -> None:
    """Delete the file. Safe to repeat. Raises InputConflict while unfinished jobs need it."""
    locked = InputUpload.objects.select_for_update(no_key=True, of=("self",)).filter(pk=upload.pk).first()
    if locked is None:
        return
    upload = locked
    if upload.file_id is not None:
        stored = StoredFile.objects.select_for_update(of=("self",)).get(pk=upload.file_id)
        with connection.cursor() as cursor:
            # NAME.gz goes with NAME.
            cursor.execute(sql.USED_NAMES, [[stored.name, stored.name.removesuffix(".gz")]])
            if cursor.fetchone() is not None:
                raise InputConflict("name", "Unfinished jobs need this file. Cancel them, or wait.")
        if is_referred_to(stored):
            raise InputConflict("name", "Programs or container images need this file.")
        if stored.deleted_at is None:
            default_storage.delete(stored.path)
            StoredFile.objects.filter(pk=stored.pk).update(deleted_at=now)
    _path(upload).unlink(missing_ok=True)
    upload.delete()


def is_referred_to(stored: StoredFile) -> bool:
    """Whether rows that need the file name it, such as those of versions and images."""
    relations = StoredFile._meta.get_fields(include_hidden=True)
    return any(
        relation.related_model._default_manager.filter(**{relation.field.name: stored}).exists()
        for relation in relations
        if isinstance(relation, ForeignObjectRel)
        and relation.on_delete is PROTECT
        and relation.related_model is not InputUpload
    )


def _path(upload: InputUpload) -> Path:
    # Not by its name alone, which could be that of another file with ".whole", or announced with other content.
    name = hashlib.md5(f"{upload.name} {upload.md5} {upload.nbytes}".encode(), usedforsecurity=False).hexdigest()
    return Path(settings.UPLOADS_DIR) / "inputs" / name[:2] / name


@contextmanager
def _locked(upload: InputUpload) -> Iterator[FileIO]:
    path = _path(upload)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    incoming.delete_abandoned(path.parent)
    file = incoming.open_file(path)
    try:
        incoming.lock_file(path, file)
        yield file
    except OSError as error:
        if error.errno in storage.FULL:
            raise InputError("nbytes", "The disk of this site is full. Try again later.") from error
        raise
    except UploadError as error:
        raise InputConflict("name", "Another piece of this file is being received, or it is being stored.") from error
    finally:
        file.close()


def _check_room(upload: InputUpload, here: int) -> None:
    uploads_dir, storage_dir = Path(settings.UPLOADS_DIR), storage.folder()
    needed = {uploads_dir: upload.nbytes - here}
    if storage_dir is not None and storage_dir.stat().st_dev != uploads_dir.stat().st_dev:
        needed[storage_dir] = upload.nbytes
    for folder, nbytes in needed.items():
        free = shutil.disk_usage(folder).free - incoming.SPARE_NBYTES
        if free < nbytes:
            raise InputError("nbytes", f"The site has space for {max(free, 0)} bytes, but {nbytes} are still to come.")
