"""Pairs of signing keys in files, made if they are missing."""

from __future__ import annotations

import os
from pathlib import Path

from portal.wire import signing


def make_pair_if_missing(private: Path, public: Path) -> bool:
    """Make the pair if neither part is there; True if it was made. Only its owner can read the private part."""
    if private.exists() or public.exists():
        return False
    key = signing.generate_key()
    for path, text, mode in (
        (private, signing.private_key_text(key), 0o600),
        (public, signing.public_key_text(key), 0o644),
    ):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "w") as file:
            file.write(text)
    return True
