"""Who may upload a file, and what a refused upload is told."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Final

from credit.engine.states import FileDeleteState, Outcome, ServerState, WorkunitError
from credit.models import Result
from scheduler.engine.outputs import split_upload_name, upload_name
from scheduler.files import former_outputs, lost
from scheduler.files.certificates import is_certified
from scheduler.models import Upload
from scheduler.wire.uploads import REFUSED, FileUpload

NOT_NEEDED: Final = "The task of this file is over: the file is no longer needed."
JUST_OVER: Final = "The file has just arrived by another upload, or is no longer needed."
GOING_ON: Final = "Another upload of this file is in progress."
DISK_FULL: Final = "The disk of this project is full. Your client will try again."
SEND_AGAIN: Final = "The parts do not add up to the file with the announced MD5. Please send it again."
WRONG_MD5: Final = "The file does not have the announced MD5."
_NOT_HERE: Final = "This project does not expect this file."


class UploadError(Exception):
    """An upload that is refused. ``status``: TRY_AGAIN or REFUSED."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """A file that a result delivers: its result, its maximum size, and the upload if there has been one.

    ``is_packed``: its computer packs it by gzip; the maximum is that of the unpacked file.
    """

    result: Result
    max_nbytes: int
    upload: Upload | None
    is_packed: bool = False


def find(name: str, *, is_ours: bool = False) -> ExpectedOutput:
    """Find the result that delivers a file of this name; UploadError if there is none.

    ``is_ours``: a certificate proves that one was sent.
    """
    parts = split_upload_name(name)
    if parts is None:
        raise UploadError(REFUSED, _NOT_HERE)
    result = Result.objects.filter(name=parts[0]).select_related("workunit").first()
    if is_ours and (result is None or result.server_state == ServerState.UNSENT):
        result = lost.take_back(parts[0])
    if result is None or result.server_state == ServerState.UNSENT or parts[1] >= len(result.workunit.output_files):
        raise UploadError(REFUSED, _NOT_HERE)
    upload = Upload.objects.filter(name=name).first()
    return _expected(result, parts[1], upload)


def _expected(result: Result, number: int, upload: Upload | None) -> ExpectedOutput:
    file = result.workunit.output_files[number]
    return ExpectedOutput(result, int(file["max_nbytes"]), upload, bool(file.get("gzip_when_done")))


def find_asked(asked: FileUpload) -> tuple[ExpectedOutput, FileUpload]:
    """Find the expected output that is being sent, and the request under the name that the file has here.

    UploadError if no result delivers it, or if it may not be uploaded.
    """
    if is_certified(asked.name, asked.max_nbytes, asked.certificate):
        expected = find(asked.name, is_ours=True)
    elif (former := former_outputs.find(asked)) is not None:
        asked = replace(asked, name=upload_name(former.result.name, former.number))
        expected = _expected(former.result, former.number, None)
        # First, because an upload with other content replaces what is there.
        _check_size(asked, expected)
        expected = replace(expected, upload=former_outputs.upload_of(former, asked))
    else:
        find(asked.name)
        raise UploadError(REFUSED, "The certificate of this file was not issued by this project.")
    check(expected, asked)
    return expected, asked


def check(expected: ExpectedOutput, asked: FileUpload) -> None:
    """Check that the file may be uploaded; UploadError if not."""
    _check_size(asked, expected)
    if not (expected.upload is not None and expected.upload.is_complete) and not _is_wanted(expected.result):
        raise UploadError(REFUSED, NOT_NEEDED)


def _check_size(asked: FileUpload, expected: ExpectedOutput) -> None:
    limit = min(asked.max_nbytes, expected.max_nbytes)
    if expected.is_packed:
        # Data that cannot be compressed grows a little.
        limit += limit // 1000 + 64
    if asked.nbytes > limit:
        raise UploadError(REFUSED, f"The file has {asked.nbytes} bytes; the limit is {limit}.")


def is_here(expected: ExpectedOutput, asked: FileUpload) -> bool:
    """Whether the file is complete already. UploadError if a different file is, under this name."""
    upload = expected.upload
    if upload is None or not upload.is_complete:
        return False
    if upload.as_sent != (asked.nbytes, asked.md5):
        raise UploadError(REFUSED, "Another file has been uploaded under this name.")
    return True


def stored_path(name: str) -> str:
    """Return its path in the default storage."""
    return f"outputs/{shard(name)}/{name}"


def shard(name: str) -> str:
    """Return the name of a folder that few files share."""
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:2]


def _is_wanted(result: Result) -> bool:
    """Whether the result is in progress, or can still count though it is late or was given up."""
    workunit = result.workunit
    if workunit.error_mask & WorkunitError.CANCELLED or workunit.file_delete_state != FileDeleteState.INIT:
        return False
    if result.server_state == ServerState.IN_PROGRESS:
        return True
    may_still_count = result.outcome in (Outcome.NO_REPLY, Outcome.CLIENT_DETACHED)
    return may_still_count and result.file_delete_state == FileDeleteState.INIT
