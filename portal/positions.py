"""What is read from any place in it, as a file is."""

from __future__ import annotations

import io
import os


class PositionedReader(io.RawIOBase):
    """The next byte to be read is at ``_at``, of ``_nbytes``; who reads moves it on."""

    _at = 0
    _nbytes = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._nbytes}[whence]
        self._at = max(0, base + offset)
        return self._at
