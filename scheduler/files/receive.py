"""Receive one output file: check who may upload it, keep the bytes as they come, and put the whole into the storage.

The use case is a generator of steps, so a client that sends slowly holds neither a thread nor a connection to the
database. Where the incoming file is kept meanwhile: on a disk (`on_disk`) or in parts in the storage (`in_parts`).

A whole file with the right MD5 goes into the default storage and never changes again. Its row says that it is here,
and the client is told so, only when it is in the storage, whole.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings

from portal.clients.wants import ReadBody, Steps
from scheduler.files import in_parts, on_disk, storage, uploads
from scheduler.files.uploads import Incoming, UploadError
from scheduler.wire.uploads import TRY_AGAIN, FileUpload

CHUNK_NBYTES: Final = 256 * 1024


def received_nbytes(name: str) -> int:
    """How many bytes of the file have arrived. UploadError if no result delivers a file of this name.

    All of them only if the file is in the storage. A client that hears of as many bytes as the file has sends no more,
    and takes it for uploaded; so the last byte of one that is not stored yet has to come once more.
    """
    upload = uploads.find(name).upload
    if upload is not None and upload.is_complete:
        return upload.nbytes
    here = in_parts.received_nbytes(upload) if settings.UPLOADS_IN_STORAGE else on_disk.received_nbytes(name)
    return here if upload is None else min(here, max(upload.nbytes - 1, 0))


def receive(asked: FileUpload, start: bytes) -> Steps[None]:
    """Take the bytes of a file from ``asked.offset`` on: ``start``, and then the rest of the request's body.

    Returns when the whole file is in the storage, whether it came now or before. Raises UploadError. An OSError of a
    body that breaks off, or of the storage, is passed on, and the bytes that arrived before stay.
    """
    incoming: Incoming = in_parts.IncomingParts(asked) if settings.UPLOADS_IN_STORAGE else on_disk.IncomingFile(asked)
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
                raise UploadError(TRY_AGAIN, uploads.DISK_FULL) from error
            raise
        yield incoming.call(incoming.end)
    finally:
        incoming.close()


def discard(name: str) -> bool:
    """Forget a file that was never completed, and what a server that died may have stored of it.

    False, and nothing is forgotten, while it is being uploaded. In the caller's transaction.
    """
    return in_parts.discard(name) if settings.UPLOADS_IN_STORAGE else on_disk.discard(name)


def tidy(name: str) -> None:
    """Remove what a server leaves of a complete upload that dies just then."""
    if not settings.UPLOADS_IN_STORAGE:
        on_disk.tidy(name)
