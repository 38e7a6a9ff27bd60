"""Incoming files in parts in the default storage: any web server goes on with what another one began.

A request collects bytes in a temporary file, which nobody else needs. When `PART_NBYTES` have come, or the body breaks
off, they become an object of their own, and its row says from which byte on. A whole file is made of the parts and of
what the last request still has; one that comes in a single request, and is no longer than a part, is stored at once.

* The upload's row names the request that may write, and until when nobody else may (by the database's clock). It
  proves itself again as long as it goes on. When its time is over another one takes its place. Whatever an earlier
  one still does then comes to nothing: each writes objects with names of its own, and only the one that the row names
  can have them counted.
* A part's row comes before its object. So an object that nobody needs is always known: when its request was killed,
  has lost its place, or could not delete it itself. `scheduler.files.leftovers` deletes it, a day later.
* No transaction is open, and no lock is held, while the storage is asked for something.

Locks: the workunit's row, the upload's row, the parts' rows. The file deleter takes them in the same order, and leaves
a workunit alone while a request may write a file of it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import os
import time
import uuid
from tempfile import SpooledTemporaryFile
from typing import Final, NoReturn

import structlog
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.utils import timezone

from scheduler.files import storage, uploads
from scheduler.files.joined import Joined, Piece
from scheduler.files.uploads import Incoming, Place, UploadError
from scheduler.models import IncomingPart, Upload
from scheduler.wire.uploads import REFUSED, TRY_AGAIN, FileUpload

log = structlog.get_logger(__name__)

PART_NBYTES: Final = 16 * 1024 * 1024
PLACE_SECS: Final = 120
"""A request that has not proved itself for this long loses its place. Longer than the storage may keep it waiting."""
_PROOF_SECS: Final = PLACE_SECS / 8
_IN_MEMORY_NBYTES: Final = 256 * 1024
_LOST: Final = "Another upload of this file has begun meanwhile."
_LONGEST: Final = Now() + dt.timedelta(seconds=2 * PLACE_SECS)
"""A place that is kept for longer was taken by a clock that was ahead, before a failover."""
_MAY_WRITE: Final = ExpressionWrapper(Q(writer_until__gt=Now(), writer_until__lt=_LONGEST), output_field=BooleanField())


def received_nbytes(upload: Upload | None) -> int:
    """How much of a file that is not complete has arrived."""
    return 0 if upload is None else upload.received_nbytes


def discard(name: str) -> bool:
    """Forget a file that was never completed; False while a request may write it. In the caller's transaction."""
    upload = Upload.objects.select_for_update().annotate(may_write=_MAY_WRITE).filter(name=name).first()
    if upload is None or upload.is_complete:
        return True
    if upload.may_write:
        return False
    forget(upload)
    return True


def forget(upload: Upload) -> None:
    """Take all parts out of force, and the place from whoever had it; the row is locked. Objects are deleted later."""
    IncomingPart.objects.filter(name=upload.name).update(is_in_force=False)
    Upload.objects.filter(pk=upload.pk).update(writer=None, writer_until=None, received_nbytes=0)


class IncomingParts(Incoming):
    """The request that has the place of the upload's writer."""

    def __init__(self, asked: FileUpload) -> None:
        super().__init__(asked)
        self._writer = uuid.uuid4()
        self._upload_id = 0
        self._stored_nbytes = asked.offset
        self._nparts = 0
        self._proved_at = 0.0
        self._waiting_nbytes = 0
        self._waiting = SpooledTemporaryFile(max_size=_IN_MEMORY_NBYTES)  # noqa: SIM115 - closed by _let_go

    def _let_go(self) -> None:
        self._waiting.close()

    def begin(self) -> bool:
        asked = self._asked
        place = uploads.find_asked(asked)
        if uploads.is_here(place, asked):
            return False
        self._upload_id = self._take_place(place)
        self._proved_at = time.monotonic()
        return True

    def write(self, chunk: bytes) -> None:
        self._waiting.write(chunk)
        self._waiting_nbytes += len(chunk)
        if self._waiting_nbytes >= PART_NBYTES:
            self._store_part()
        else:
            self._prove()

    def note_nbytes(self) -> int:
        """Give up the place, too: the client may come again at once."""
        try:
            if self._waiting_nbytes:
                self._store_part()
        finally:
            self._leave()
        return self._stored_nbytes

    def end(self) -> None:
        if self._stored_nbytes + self._waiting_nbytes < self._asked.nbytes:
            self.note_nbytes()
            raise UploadError(TRY_AGAIN, "The upload ended before the file did.")
        try:
            self._store_whole()
        except OSError:
            # What has come stays if the storage takes it now.
            self.note_nbytes()
            raise
        except BaseException:
            self._leave()
            raise

    # --- the place of the writer ------------------------------------------------------------------------------------

    def _take_place(self, place: Place) -> int:
        """The number of the upload's row. UploadError if somebody else has the place, or the offset does not fit.

        What arrived before under the same name with other content is dropped, as it was never whole.
        """
        asked = self._asked
        with transaction.atomic():
            if not uploads.is_needed_and_locked(place):
                raise UploadError(REFUSED, uploads.NOT_NEEDED)
            row = Upload(result=place.result, name=asked.name, nbytes=asked.nbytes, md5=asked.md5)
            Upload.objects.bulk_create([row], ignore_conflicts=True)
            upload = Upload.objects.select_for_update().annotate(may_write=_MAY_WRITE).get(name=asked.name)
            if upload.is_complete:
                raise UploadError(TRY_AGAIN, uploads.JUST_COMPLETED)
            if upload.may_write:
                raise UploadError(TRY_AGAIN, uploads.GOING_ON)
            here = upload.received_nbytes
            if (upload.md5, upload.nbytes) != (asked.md5, asked.nbytes):
                forget(upload)
                here = 0
            mine = {"received_nbytes": asked.offset, "writer": self._writer, "writer_until": _place_end()}
            fits = asked.offset <= here
            if fits and here > asked.offset:
                _cut(asked.name, asked.offset)
            Upload.objects.filter(pk=upload.pk).update(md5=asked.md5, nbytes=asked.nbytes, **(mine if fits else {}))
        if not fits:
            raise UploadError(TRY_AGAIN, f"The upload begins at byte {asked.offset}, but only {here} bytes are here.")
        return upload.pk

    def _prove(self) -> None:
        """Keep the place, if that is due. UploadError if somebody else has it by now."""
        now = time.monotonic()
        if now - self._proved_at >= _PROOF_SECS:
            self._update(writer_until=_place_end())
            self._proved_at = now

    def _update(self, **values: object) -> None:
        """Write to the upload's row, and so lock it. UploadError if this request has lost its place."""
        mine = Upload.objects.filter(pk=self._upload_id, writer=self._writer, completed_at=None)
        if not mine.update(**values):
            raise UploadError(TRY_AGAIN, _LOST)

    def _leave(self) -> None:
        mine = Upload.objects.filter(pk=self._upload_id, writer=self._writer)
        mine.update(writer=None, writer_until=None)

    # --- objects ----------------------------------------------------------------------------------------------------

    def _store_part(self) -> None:
        """Make an object of the bytes that wait."""
        nbytes, name = self._waiting_nbytes, self._asked.name
        path = f"uploads/{uploads.shard(name)}/{name}.{self._writer.hex}.{self._nparts}"
        self._nparts += 1
        part = IncomingPart.objects.create(
            path=path, name=name, offset=self._stored_nbytes, nbytes=nbytes, begun_at=timezone.now()
        )
        self._update(writer_until=_place_end())
        default_storage.save(path, File(self._waiting, name=path))
        storage.sync([path])
        with transaction.atomic():
            self._update(received_nbytes=self._stored_nbytes + nbytes, writer_until=_place_end())
            IncomingPart.objects.filter(pk=part.pk).update(is_in_force=True)
        self._proved_at = time.monotonic()
        self._stored_nbytes += nbytes
        self._waiting_nbytes = 0
        self._waiting.seek(0)
        self._waiting.truncate()

    def _store_whole(self) -> None:
        """Put the file into the storage, then note it in the row."""
        asked = self._asked
        wanted = storage.Content(asked.nbytes, asked.md5)
        parts = list(IncomingPart.objects.filter(name=asked.name, is_in_force=True).order_by("offset"))
        pieces = [Piece(part.path, part.nbytes) for part in parts]
        path = f"{uploads.stored_path(asked.name)}.{self._writer.hex}"
        # In one request most files come whole; then nothing has to be read to know whether it is the right one.
        if not pieces and _md5(self._waiting) != wanted.md5:
            self._drop(parts)
        whole = IncomingPart.objects.create(
            path=path, name=asked.name, offset=0, nbytes=asked.nbytes, begun_at=timezone.now()
        )
        self._update(writer_until=_place_end())
        try:
            joined = Joined(pieces, self._waiting, self._prove)
            with io.BufferedReader(joined, _IN_MEMORY_NBYTES) as file:
                default_storage.save(path, File(file, name=path))
            sent = joined.content()
        except FileNotFoundError:
            log.exception("part_missing", upload=asked.name)
            self._drop(parts)
        if sent != wanted:
            storage.forget([path])
            self._drop(parts)
        self._prove()
        storage.check(path, wanted)
        storage.sync([path])
        with transaction.atomic():
            self._update(
                path=path, received_nbytes=asked.nbytes, completed_at=timezone.now(), writer=None, writer_until=None
            )
            whole.delete()
            IncomingPart.objects.filter(name=asked.name).update(is_in_force=False)
        # Whatever cannot be deleted now is deleted later.
        if storage.forget([part.path for part in parts]):
            IncomingPart.objects.filter(pk__in=[part.pk for part in parts]).delete()

    def _drop(self, parts: list[IncomingPart]) -> NoReturn:
        """The content is not the announced one. If a part came before, that may be at fault: the client begins anew."""
        with transaction.atomic():
            self._update(received_nbytes=0, writer=None, writer_until=None)
            IncomingPart.objects.filter(name=self._asked.name).update(is_in_force=False)
        if parts or self._asked.offset:
            raise UploadError(TRY_AGAIN, uploads.SEND_ANEW)
        raise UploadError(REFUSED, uploads.WRONG_MD5)


def _place_end() -> CombinedExpression:
    return Now() + dt.timedelta(seconds=PLACE_SECS)


def _cut(name: str, offset: int) -> None:
    """Take out of force what lies behind the offset; more than that is here."""
    parts = IncomingPart.objects.filter(name=name, is_in_force=True)
    parts.filter(offset__gte=offset).update(is_in_force=False)
    last = parts.order_by("offset").last()
    if last is not None:
        last.nbytes = min(last.nbytes, offset - last.offset)
        last.save(update_fields=["nbytes"])


def _md5(file: SpooledTemporaryFile[bytes]) -> str:
    """Of what is in the file, which is at its end before and after."""
    file.seek(0)
    digest = hashlib.md5(usedforsecurity=False)
    while chunk := file.read(_IN_MEMORY_NBYTES):
        digest.update(chunk)
    file.seek(0, os.SEEK_END)
    return digest.hexdigest()
