"""Unpacks an output that its computer packed by gzip, as the job required, next to the file that arrived."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from portal.object_storage.storage import ContentDigest
from scheduler.files.uploads import UploadError
from scheduler.wire.uploads import REFUSED

_CHUNK_NBYTES: Final = 256 * 1024
_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class UnpackedFile:
    """The unpacked file, open, and its digest."""

    path: Path
    file: FileIO
    content: ContentDigest

    def remove(self) -> None:
        self.file.close()
        self.path.unlink(missing_ok=True)


def unpack(packed: FileIO, path: Path, max_nbytes: int, check_spare: Callable[[], None]) -> UnpackedFile | None:
    """Unpack ``packed``, which is at ``path``. UploadError if it unpacks to more than ``max_nbytes``.

    None if it is damaged, or not packed because the program does not support it: it is then stored as it is, and the
    comparison decides. ``check_spare`` is called repeatedly, and raises if the disk is nearly full.
    """
    packed.seek(0)
    if packed.read(len(_MAGIC)) != _MAGIC:
        return None
    packed.seek(0)
    # No upload has this name, because those end with a number.
    plain_path = path.with_name(f"{path.name}.plain")
    plain_path.unlink(missing_ok=True)
    plain = FileIO(os.open(plain_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "r+")
    digest, nbytes = hashlib.md5(usedforsecurity=False), 0
    try:
        with gzip.GzipFile(fileobj=packed, mode="rb") as unpacker:
            while chunk := unpacker.read(_CHUNK_NBYTES):
                nbytes += len(chunk)
                if nbytes > max_nbytes:
                    raise UploadError(REFUSED, f"The file has more than {max_nbytes} bytes when it is unpacked.")
                check_spare()
                digest.update(chunk)
                rest = memoryview(chunk)
                while rest:
                    rest = rest[plain.write(rest) :]
    except (gzip.BadGzipFile, EOFError, zlib.error):
        UnpackedFile(plain_path, plain, ContentDigest(0, "")).remove()
        return None
    except BaseException:
        UnpackedFile(plain_path, plain, ContentDigest(0, "")).remove()
        raise
    return UnpackedFile(plain_path, plain, ContentDigest(nbytes, digest.hexdigest()))
