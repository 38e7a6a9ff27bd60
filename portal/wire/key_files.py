"""Creates files with secrets, and pairs of signing keys, if they are missing."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from portal.wire import signing


def make_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Create the file if it is missing; never a partial one, for another process or after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with NamedTemporaryFile("w", dir=path.parent, encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
        try:
            path.hardlink_to(file.name)
        except FileExistsError:
            return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_pair_if_missing(private: Path, public: Path) -> bool:
    """Create the pair if its public part is missing; True if it was created. Only its owner can read the private part.

    An existing private part stays: a crash may have come before the public one was made. Raises SigningError if it is
    not a key.
    """
    if public.exists():
        return False
    make_file(private, signing.private_key_text(signing.generate_key()))
    key = signing.parse_private_key(private.read_text(encoding="ascii"))
    make_file(public, signing.public_key_text(key), 0o644)
    return True
