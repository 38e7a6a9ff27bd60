"""The keys of the project server: the code-signing pair, and the secret that certifies uploads.

Clients keep the code-signing key and check every program with it (BOINC protocol, keys and signatures), so its private
part may be kept on another machine. It is not the key that signs addresses of projects: either can be kept offline
alone. Nobody but this site reads upload certificates, so they are keyed hashes: a microsecond each, in the form that
clients expect of a signature.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from portal import signing
from portal.key_files import make_pair_if_missing


def make_if_missing() -> bool:
    """Make the code-signing pair if neither part is there; True if it was made."""
    return make_pair_if_missing(Path(settings.CODE_SIGNING_KEY), Path(settings.CODE_SIGNING_KEY_PUBLIC))


def code_signing_key_text() -> str:
    """The public key as scheduler replies carry it, LF at its end. FileNotFoundError before `make_if_missing`."""
    return _read(str(settings.CODE_SIGNING_KEY_PUBLIC))


@lru_cache(maxsize=4)
def _read(path: str) -> str:
    return Path(path).read_text(encoding="ascii")


def sign_code(content: bytes) -> str | None:
    """The signature of a program file; None where the private key is kept elsewhere."""
    private = Path(settings.CODE_SIGNING_KEY)
    if not private.exists():
        return None
    return signing.sign(content, signing.parse_private_key(private.read_text(encoding="ascii")))


def is_signed(content: bytes, signature: str) -> bool:
    """Whether clients will accept this signature of this content. SigningError if it is no signature."""
    return signing.verify(content, signature, signing.parse_public_key(code_signing_key_text()))


def upload_certificate(name: str, max_nbytes: int) -> str:
    """What a client must show to upload a file of this name, of that size at most: a hex line and a dot."""
    text = f"<name>{name}</name><max_nbytes>{max_nbytes}</max_nbytes>"
    digest = hmac.new(settings.UPLOAD_SECRET.encode(), text.encode(), hashlib.sha256)
    return f"{digest.hexdigest()}\n.\n"


def is_certified(name: str, max_nbytes: int, certificate: str) -> bool:
    """Whether this certificate was made by `upload_certificate`; blanks around its lines do not matter."""
    lines = certificate.split()
    return hmac.compare_digest("".join(lines).encode(), "".join(upload_certificate(name, max_nbytes).split()).encode())
