"""What goes wrong with object storage, without its library."""

from __future__ import annotations


class StorageError(OSError):
    """The object storage cannot be reached, or refuses: nothing is known of the file. The message has one line."""


class StorageUnreachable(StorageError):
    """It cannot be reached, or cannot answer now: what is asked next would fail, too."""
