"""Streams outputs as one ZIP archive: only a part of each file is in memory at a time.

Files that are lost or damaged in the storage are named in a text at the end; all others are complete.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from io import RawIOBase
from typing import Any, Final

from django.core.files.storage import default_storage

from credit.models import Batch
from scheduler.engine.limits import is_job_name, is_open_name
from scheduler.models import KeptOutput
from scheduler.submission import batches

Outputs = Iterable[KeptOutput]
PAGE: Final = 500
PART_NBYTES: Final = 256 * 1024
FAULTS: Final = "MISSING.txt"


class _Sink(RawIOBase):
    """Buffers what zipfile writes, until it is sent."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


def stream(outputs: Outputs, name_of: Callable[[KeptOutput], str] | None = None) -> Iterator[bytes]:
    """Yield the archive, in parts. ``name_of``: returns the path of each file in it; WORKUNIT/FILE by default."""
    sink = _Sink()
    faults: list[str] = []
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED, allowZip64=True) as packed:
        for output in outputs:
            for _ in _add(packed, output, (name_of or path_of)(output), faults):
                if data := sink.taken():
                    yield data
        if faults:
            packed.writestr(FAULTS, "".join(f"{line}\n" for line in faults))
    yield sink.taken()


def of_batch(batch: Batch) -> Iterator[KeptOutput]:
    """Yield each output that is currently kept."""
    after = 0
    while page := batches.read_outputs(batch, after=after, limit=PAGE):
        after = page[-1].pk
        yield from page


def _add(packed: zipfile.ZipFile, output: KeptOutput, path: str, faults: list[str]) -> Iterator[None]:
    """Write a file in parts; after each of them the sink may be emptied."""
    digest, nread = hashlib.md5(usedforsecurity=False), 0
    try:
        source = default_storage.open(output.path, "rb")
    except OSError as error:
        faults.append(f"{output.workunit_name}/{output.name}: missing from the storage ({type(error).__name__})")
        return
    entry = zipfile.ZipInfo(path, output.kept_at.timetuple()[:6])
    entry.external_attr = 0o644 << 16
    with source, packed.open(entry, "w", force_zip64=True) as target:
        try:
            while part := source.read(PART_NBYTES):
                digest.update(part)
                nread += len(part)
                target.write(part)
                yield
        except OSError as error:
            faults.append(f"{output.workunit_name}/{output.name}: could not be read to its end ({error})")
            return
    if (nread, digest.hexdigest()) != (output.nbytes, output.md5):
        faults.append(f"{output.workunit_name}/{output.name}: damaged in the storage, its MD5 should be {output.md5}")


def path_of(output: KeptOutput) -> str:
    """Return its path in the archive: never outside the folder in which somebody unpacks it."""
    folder = output.workunit_name if is_job_name(output.workunit_name) else "other"
    name = output.name if is_open_name(output.name) else f"output_{output.pk}"
    return f"{folder}/{name}"
