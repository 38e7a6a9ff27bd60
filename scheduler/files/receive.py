"""Receive one output file: check who may upload it, keep the bytes as they come, and put the whole into the storage.

The use case waits only at its `await`, so a client that sends slowly holds neither a thread nor a connection to the
database, and a storage that takes long holds no connection.

A whole file with the right MD5 goes into the default storage and never changes again. Its row says that it is here,
and the client is told so, only when it is in the storage, whole.
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
    """How many bytes of the file have arrived. UploadError if no result delivers a file of this name.

    All of them only if the file is in the storage. A client that hears of as many bytes as the file has sends no more,
    and takes it for uploaded; so the last byte of one that is not stored yet has to come once more.
    """
    upload = uploads.find(name).upload
    if upload is not None and upload.is_complete:
        return upload.as_sent[0]
    here = incoming.received_nbytes(name)
    return here if upload is None else min(here, max(upload.nbytes - 1, 0))


async def receive(asked: FileUpload, start: bytes) -> None:
    """Take the bytes of a file from ``asked.offset`` on: ``start``, and then the rest of the request's body.

    Returns when the whole file is in the storage, whether it came now or before. Raises UploadError. An OSError of a
    body that breaks off, or of the storage, is passed on, and the bytes that arrived before stay.
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
