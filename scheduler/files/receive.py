"""Receives one output file: checks who may upload it, keeps the bytes as they arrive, and puts the whole file into the
storage.

The use case waits only at its `await`, so a slow client holds neither a thread nor a database connection, and a slow
storage holds no connection.

A complete file with the right MD5 goes into the default storage and never changes again. Only when it is completely
stored does its row say that it is here, and the client is told so.
"""

from __future__ import annotations

from typing import Final

from portal.clients.effects import ReadBody
from portal.object_storage import storage
from scheduler.files import incoming, uploads
from scheduler.files.incoming import IncomingFile
from scheduler.files.uploads import UploadError
from scheduler.wire.uploads import TRY_AGAIN, FileUpload

CHUNK_NBYTES: Final = 256 * 1024


def received_nbytes(name: str) -> int:
    """Return how many bytes of the file have arrived. UploadError if no result delivers a file of this name.

    Returns all of them only if the file is in the storage. A client that is told the full size sends no more, and
    considers it uploaded; so the last byte of a file that is not stored yet has to come again.
    """
    upload = uploads.find(name).upload
    if upload is not None and upload.is_complete:
        return upload.as_sent[0]
    here = incoming.received_nbytes(name)
    return here if upload is None else min(here, max(upload.nbytes - 1, 0))


async def receive(asked: FileUpload, start: bytes) -> None:
    """Receive the bytes of a file starting at ``asked.offset``: ``start``, then the rest of the request's body.

    Returns when the complete file is in the storage, whether it came now or earlier. Raises UploadError. An OSError of
    an interrupted body, or of the storage, is passed on, and the bytes that have arrived stay.
    """
    file = IncomingFile(asked)
    try:
        if not await file.call(file.begin):
            return
        left = asked.nbytes - asked.offset
        while left and (chunk := start or await ReadBody(min(CHUNK_NBYTES, left))):
            start = b""
            await file.call(file.write, chunk)
            left -= len(chunk)
        for step in (file.check, file.store, file.complete):
            await file.call(step)
    except OSError as error:
        if error.errno in storage.FULL:
            raise UploadError(TRY_AGAIN, uploads.DISK_FULL) from error
        raise
    finally:
        file.close()
