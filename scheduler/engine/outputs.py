"""Which output files a result has to deliver, which have arrived, and whether two results delivered the same.

The n-th of a workunit's ``output_files`` is uploaded as ``<result name>_<n>``, n from 0. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

_NAME: Final = re.compile(r"(.+)_(0|[1-9][0-9]{0,2})")

_FORMER_NAME: Final = re.compile(r"_r[0-9]{1,10}_(0|[1-9][0-9]?)")


class UploadedFile(Protocol):
    """The relevant fields of an upload (``scheduler.models.Upload``); ``path`` is that of the default storage."""

    name: str
    path: str
    nbytes: int
    md5: str

    @property
    def is_complete(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ReceivedOutputs:
    """The outputs of a result that have arrived.

    ``outputs``: one of {"name", "nbytes", "md5", "path"} for each file, in the order of the workunit's output files.
    ``digest``: 16 bytes, equal if and only if all outputs are. ``missing``: names of required files that are not here.
    """

    outputs: list[dict[str, Any]]
    digest: bytes
    missing: list[str]

    @property
    def is_complete(self) -> bool:
        return not self.missing


def upload_name(result_name: str, number: int) -> str:
    """Return the name that the n-th output file of a result is uploaded under."""
    return f"{result_name}_{number}"


def split_upload_name(name: str) -> tuple[str, int] | None:
    """Return the result's name and the file's number; None if no upload can have this name."""
    match = _NAME.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def own_upload_name(result_name: str, name: str) -> str:
    """Return our name for an output that its client names so: BOINC's servers put a random number into it."""
    match = _FORMER_NAME.fullmatch(name.removeprefix(result_name)) if name.startswith(result_name) else None
    return upload_name(result_name, int(match[1])) if match else name


def expected_and_received(
    output_files: Sequence[Mapping[str, Any]], result_name: str, uploads: Iterable[UploadedFile]
) -> ReceivedOutputs:
    """Compare a workunit's ``output_files`` with the uploads of one of its results.

    The digest covers number, size and MD5 of each compared file that arrived, in order: so a missing optional one
    differs from an empty one, and neither result names nor the order of uploads matter.
    """
    here = {upload.name: upload for upload in uploads if upload.is_complete}
    digest = hashlib.md5(usedforsecurity=False)
    outputs, missing = [], []
    for number, output_file in enumerate(output_files):
        name = upload_name(result_name, number)
        upload = here.get(name)
        if upload is not None:
            outputs.append({"name": name, "nbytes": upload.nbytes, "md5": upload.md5, "path": upload.path})
            if not output_file.get("no_validate"):
                digest.update(f"{number} {upload.nbytes} {upload.md5}\n".encode())
        elif not output_file.get("optional"):
            missing.append(name)
    return ReceivedOutputs(outputs, digest.digest(), missing)
