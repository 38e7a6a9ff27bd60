"""Several pieces read as one file, whose MD5 is known at the end: objects of the default storage, and an open file."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import IO, Any, NamedTuple

from django.core.files.storage import default_storage

from portal.positions import PositionedReader
from scheduler.files.storage import Content


class Piece(NamedTuple):
    """The first bytes of an object, or all of them."""

    path: str
    nbytes: int


class Joined(PositionedReader):
    """The pieces in their order, then ``rest`` up to where it is now. ``proceed`` is called at each step.

    FileNotFoundError, at some step, if an object is missing or shorter than its piece.
    """

    def __init__(self, pieces: Sequence[Piece], rest: IO[bytes], proceed: Callable[[], None]) -> None:
        self._pieces = pieces
        self._rest = rest
        self._proceed = proceed
        rest_nbytes = rest.seek(0, os.SEEK_END)
        self._starts = [0, *accumulate(piece.nbytes for piece in pieces)]
        self._nbytes = self._starts[-1] + rest_nbytes
        self._open: tuple[int, IO[bytes]] | None = None
        self._digest = hashlib.md5(usedforsecurity=False)
        self._digested = 0

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._nbytes:
            return 0
        self._proceed()
        number = bisect_right(self._starts, self._at) - 1
        within = self._at - self._starts[number]
        if number < len(self._pieces):
            part = self._file(number, within).read(min(len(buffer), self._pieces[number].nbytes - within))
            if not part:
                raise FileNotFoundError(f"{self._pieces[number].path} is shorter than it was")
        else:
            self._rest.seek(within)
            part = self._rest.read(len(buffer))
        buffer[: len(part)] = part
        self._note(part)
        return len(part)

    def content(self) -> Content:
        """Size and MD5 of all that was read, from the beginning on; each byte counts once."""
        return Content(self._digested, self._digest.hexdigest())

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None
        super().close()

    def _file(self, number: int, within: int) -> IO[bytes]:
        if self._open is None or self._open[0] != number:
            if self._open is not None:
                self._open[1].close()
            self._open = number, default_storage.open(self._pieces[number].path, "rb")
        file = self._open[1]
        if file.tell() != within:
            file.seek(within)
        return file

    def _note(self, part: bytes) -> None:
        # Who sends the file may go back, and send a part of it again.
        if self._at <= self._digested < self._at + len(part):
            self._digest.update(part[self._digested - self._at :])
            self._digested = self._at + len(part)
        self._at += len(part)
