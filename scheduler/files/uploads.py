"""What all uploads have in common, wherever the incoming file is kept: who may upload it, and its row."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.db import connection

from credit.engine.states import FileDeleteState, Outcome, ServerState, WorkunitError
from credit.models import Result
from portal.clients.wants import Call
from scheduler.engine.outputs import split_upload_name
from scheduler.files import lost
from scheduler.files.certificates import is_certified
from scheduler.models import Upload
from scheduler.wire.uploads import REFUSED, FileUpload

NOT_NEEDED: Final = "The task of this file is over: it is not needed any more."
JUST_COMPLETED: Final = "The file has just been completed by another upload."
GOING_ON: Final = "Another upload of this file is going on."
DISK_FULL: Final = "The disk of this project is full. Your client will try again."
SEND_ANEW: Final = "The parts do not make up the file with the announced MD5. Please send it anew."
WRONG_MD5: Final = "The file does not have the announced MD5."
_NOT_HERE: Final = "This file is not one that this project waits for."
# Waits for a file deleter that has locked the workunit, and sees its changes.
_LOCK_WORKUNIT: Final = "SELECT file_delete_state FROM credit_workunit WHERE id = %s FOR SHARE"


class UploadError(Exception):
    """An upload that is not taken. ``status``: TRY_AGAIN or REFUSED."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Place:
    """A file that a result delivers: its result, its largest size, and the upload if there has been one."""

    result: Result
    max_nbytes: int
    upload: Upload | None


class Incoming(ABC):
    """An incoming file, which nobody else writes from `begin` to `close`. All methods but `call` and `close` block."""

    def __init__(self, asked: FileUpload) -> None:
        self._asked = asked
        self._at_work = threading.Lock()
        self._is_over = False

    def call(self, function: Callable[..., object], *args: object) -> Call:
        """One of the methods below, for a thread."""
        return Call(partial(self._do, function, *args))

    def close(self) -> None:
        """Close the file: now or, if the request was cancelled, when the thread that works on it is done."""
        self._is_over = True
        if self._at_work.acquire(blocking=False):
            self._let_go()
            self._at_work.release()

    def _do(self, function: Callable[..., object], *args: object) -> object:
        try:
            with self._at_work:
                return function(*args)
        finally:
            if self._is_over:
                self.close()

    @abstractmethod
    def _let_go(self) -> None:
        """Close what is open. May be called several times, and does not block."""

    @abstractmethod
    def begin(self) -> bool:
        """Whether bytes are still wanted; False if the file is whole already. UploadError if they are not taken."""

    @abstractmethod
    def write(self, chunk: bytes) -> None:
        """Take the next bytes."""

    @abstractmethod
    def note_nbytes(self) -> int:
        """Keep what has arrived, and note in the row how much that is."""

    @abstractmethod
    def end(self) -> None:
        """The body has ended: put the file into the storage. UploadError if it is not whole."""


def find(name: str, *, is_ours: bool = False) -> Place:
    """UploadError if no result delivers a file of this name. ``is_ours``: a certificate shows that one was sent."""
    parts = split_upload_name(name)
    if parts is None:
        raise UploadError(REFUSED, _NOT_HERE)
    result = Result.objects.filter(name=parts[0]).select_related("workunit").first()
    if is_ours and (result is None or result.server_state == ServerState.UNSENT):
        result = lost.take_back(parts[0])
    if result is None or result.server_state == ServerState.UNSENT or parts[1] >= len(result.workunit.output_files):
        raise UploadError(REFUSED, _NOT_HERE)
    max_nbytes = int(result.workunit.output_files[parts[1]]["max_nbytes"])
    return Place(result, max_nbytes, Upload.objects.filter(name=name).first())


def find_asked(asked: FileUpload) -> Place:
    """The place of a file that is being sent. UploadError if no result delivers it, or if it may not be uploaded."""
    place = find(asked.name, is_ours=is_certified(asked.name, asked.max_nbytes, asked.certificate))
    check(place, asked)
    return place


def check(place: Place, asked: FileUpload) -> None:
    """UploadError for what may not be uploaded."""
    if not is_certified(asked.name, asked.max_nbytes, asked.certificate):
        raise UploadError(REFUSED, "The certificate of this file is not one of this project's.")
    if asked.nbytes > min(asked.max_nbytes, place.max_nbytes):
        raise UploadError(
            REFUSED, f"The file has {asked.nbytes} bytes; the limit is {min(asked.max_nbytes, place.max_nbytes)}."
        )
    if not (place.upload is not None and place.upload.is_complete) and not _is_wanted(place.result):
        raise UploadError(REFUSED, NOT_NEEDED)


def is_here(place: Place, asked: FileUpload) -> bool:
    """Whether the file is whole already. UploadError if another file is, under this name."""
    upload = place.upload
    if upload is None or not upload.is_complete:
        return False
    if (upload.md5, upload.nbytes) != (asked.md5, asked.nbytes):
        raise UploadError(REFUSED, "Another file has been uploaded under this name.")
    return True


def is_needed_and_locked(place: Place) -> bool:
    """Whether the file deleter leaves its workunit alone; it does so until the caller's transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_WORKUNIT, [place.result.workunit_id])
        state = cursor.fetchone()
    return state is not None and state[0] == FileDeleteState.INIT


def stored_path(name: str) -> str:
    """Where the default storage is to keep it."""
    return f"outputs/{shard(name)}/{name}"


def shard(name: str) -> str:
    """A folder's name, so that few files share one."""
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:2]


def _is_wanted(result: Result) -> bool:
    """Whether the result is in progress, or is late or was given up but can still count."""
    if result.workunit.error_mask & WorkunitError.CANCELLED:
        return False
    if result.server_state == ServerState.IN_PROGRESS:
        return True
    can_count = result.file_delete_state == result.workunit.file_delete_state == FileDeleteState.INIT
    return result.outcome in (Outcome.NO_REPLY, Outcome.CLIENT_DETACHED) and can_count
