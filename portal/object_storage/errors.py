"""Errors of object storage, without its library."""

from __future__ import annotations


class StorageError(OSError):
    """The object storage cannot be reached, or refuses: nothing is known about the file. The message has one line."""


class StorageUnreachable(StorageError):
    """It cannot be reached, or cannot answer now, so the next request would fail, too."""
